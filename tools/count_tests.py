#!/usr/bin/env python3
"""Counts the tests in a JUnit file: prints "passed failed skipped".

ctest writes one case for each test program; the cases of cmocka inside of it
are found in its output, and count one each.  A program that failed without a
failed case (it crashed, it ran out of time, a sanitizer ended it) counts as
one failure.  With --failed the names of what failed follow, one a line.
"""
import argparse
import re
import sys
import xml.etree.ElementTree as ET

PASSED = re.compile(r"^\[ +OK +\]", re.M)
FAILED = re.compile(r"^\[ +FAILED +\] (test_\w+)", re.M)
SKIPPED = re.compile(r"^\[ +SKIPPED +\] (test_\w+)", re.M)


def count_case(case):
    """(passed, names of the failed, skipped) of one testcase element."""
    name = ".".join(
        part for part in (case.get("classname"), case.get("name")) if part)
    output = case.findtext("system-out") or ""
    bad = (case.find("failure") is not None or case.find("error") is not None
           or case.get("status") == "fail")
    failed = sorted({"%s: %s" % (case.get("name"), f)
                     for f in FAILED.findall(output)})
    inner = len(PASSED.findall(output))
    if inner or failed:
        skipped = len(set(SKIPPED.findall(output)))
        if bad and not failed:
            failed = [name]
        return inner, failed, skipped
    if bad:
        return 0, [name], 0
    if case.find("skipped") is not None or case.get("status") == "notrun":
        return 0, [], 1
    return 1, [], 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("file")
    parser.add_argument("--failed", action="store_true")
    args = parser.parse_args()

    passed, failed, skipped = 0, [], 0
    for case in ET.parse(args.file).iter("testcase"):
        p, f, s = count_case(case)
        passed += p
        failed += f
        skipped += s
    print(passed, len(failed), skipped)
    if args.failed:
        for name in failed:
            print(name)


if __name__ == "__main__":
    sys.exit(main())
