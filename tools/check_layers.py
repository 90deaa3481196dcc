#!/usr/bin/env python3
"""Includes go one way: checks every file of src against docs/architecture.md.

The folders stand in two towers.  A folder includes itself and what stands
above it in its own tower; `base`, `wire` and the public headers may be used
everywhere.  The towers never see each other; the joined folders see both, and
those joined folders that stand above them.  Some libraries have one place.
"""
import pathlib
import re
import sys

EVERYWHERE = ["base", "wire"]
COMPUTE = ["tensor", "store", "op", "kernel", "graph", "exec"]
TRANSPORT = ["io", "rpc", "cluster"]
JOINED = ["server", "client", "train", "api", "web", "cli"]

# Which folders may include a header that matches.
LIBRARIES = [
    (r"nghttp2/", {"rpc", "cli"}),
    (r"jansson\.h", {"cluster", "kernel", "web", "cli"}),
    (r"(sys/socket|sys/epoll|netdb|netinet/.*|arpa/inet|ifaddrs)\.h",
     {"io", "rpc", "cluster", "server", "web", "cli"}),
    (r"protobuf-c/", {"base", "wire", "cli"}),
    (r"dlfcn\.h", set()),
]

INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]')


def allowed(folder):
    """The folders that `folder` may include, or None if it is unknown."""
    if folder in EVERYWHERE:
        return set(EVERYWHERE[:EVERYWHERE.index(folder) + 1])
    for tower in (COMPUTE, TRANSPORT):
        if folder in tower:
            return set(EVERYWHERE + tower[:tower.index(folder) + 1])
    if folder in JOINED:
        above = JOINED[:JOINED.index(folder) + 1]
        return set(EVERYWHERE + COMPUTE + TRANSPORT + above)
    return None


def check_quoted(folder, target):
    """What is wrong with #include "target", or None."""
    top = target.split("/")[0]
    if "/" not in target or ".." in target:
        return "name it from src: \"%s/%s\"" % (folder, target)
    if top in ("muster", "proto"):
        return None
    if top not in allowed(folder):
        return "%s may not see %s" % (folder, top)
    return None


def check_library(folder, target):
    for pattern, folders in LIBRARIES:
        if re.match(pattern, target) and folder not in folders:
            return "<%s> has no place in %s" % (target, folder)
    return None


def check_file(path, folder):
    for number, line in enumerate(path.read_text().split("\n"), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        quoted, target = match.group(1) == '"', match.group(2)
        check = check_quoted if quoted else check_library
        wrong = check(folder, target)
        if wrong:
            yield "%s:%d: %s" % (path, number, wrong)


def main():
    src = pathlib.Path("src")
    wrong, files = [], 0
    for folder in sorted(p for p in src.iterdir() if p.is_dir()):
        if allowed(folder.name) is None:
            wrong.append("%s: this folder has no place in the order of "
                         "tools/check_layers.py" % folder)
            continue
        for path in sorted(folder.rglob("*.[chi]*")):
            if path.suffix in (".c", ".h", ".inc"):
                files += 1
                wrong += check_file(path, folder.name)
    for line in wrong:
        print(line)
    print("%d files, %d includes that go the wrong way" % (files, len(wrong)))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
