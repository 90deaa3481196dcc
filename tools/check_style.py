#!/usr/bin/env python3
"""Those rules of CONTRIBUTING.md that a program can check.

Layout is clang-format's matter.  Here: no // comments, no tabs, no line past 80
columns, no TODO without a reason, an essay at the head of each file, functions
and files that fit in a head, exported names that begin with their file's stem,
their folder or the struct that they work on.  Exceptions stand in tools/style_exceptions.txt, each with a reason.
"""
import pathlib
import re
import sys

FUNCTION_MAX = 100
FILE_MAX = 800
COLUMNS = 80
ROOTS = ["src", "include", "tests", "bench", "examples", "python"]
EXCEPTIONS = pathlib.Path("tools/style_exceptions.txt")

# Strings, characters and comments, in one pass.
TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|'
                   r'/\*.*?\*/|//[^\n]*', re.S)
TODO = re.compile(r"\b(TODO|FIXME|XXX)\b(?!\([\w/ .-]+\): \S+ \S+)")
DECLARATION = re.compile(
    r"^(?!static|typedef|extern|return|else|#|MUST_USE \w+;)"
    r"(?:[A-Za-z_][\w ]*[ *])(\w+)\([^;{]*\)[^;{]*;", re.M)
# What a function's declaration may begin or end with.
DECORATION = re.compile(
    r"\b(MUST_USE|NORETURN|MST_API|RACY|VECTOR_CLONES|PRINTF\([^)]*\))\s*")


def read_exceptions():
    """{(rule, path or path:name): reason}; a line is `rule what: reason`."""
    found = {}
    for line in EXCEPTIONS.read_text().split("\n"):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        match = re.match(r"(\S+) (\S+): (\S.*)", line)
        if not match:
            sys.exit("%s: not `rule what: reason`: %s" % (EXCEPTIONS, line))
        found[match.group(1), match.group(2)] = match.group(3)
    return found


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def blank(text):
    """The text with strings and comments blanked out, lines kept."""
    return TOKEN.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)


def check_lines(path, text):
    for match in TOKEN.finditer(text):
        token, line = match.group(), line_of(text, match.start())
        if token.startswith("//"):
            yield "comment", path, line, "comments are /* */"
        if token.startswith("/"):
            for todo in TODO.finditer(token):
                yield ("todo", path, line_of(text, match.start() + todo.start()),
                       "say what would do it, and why not yet: "
                       "TODO(what): why")
    for number, line in enumerate(text.split("\n"), 1):
        if "\t" in line:
            yield "tab", path, number, "a tab"
        if len(line) > COLUMNS:
            yield "columns", path, number, "%d columns" % len(line)
        if line != line.rstrip():
            yield "blank", path, number, "blanks at the end"


def check_head(path, text):
    """A .c file may leave the essay to the header of its name."""
    if path.name.endswith("_test.c"):
        return
    for candidate in (path, path.with_suffix(".h")):
        if candidate.exists() and candidate.read_text().startswith("/*"):
            return
    yield "essay", path, 1, "opens with no comment on what it is"


def functions(code):
    """(name, first line, last line) of each function, by the column of its
    braces, which clang-format guarantees."""
    lines = code.split("\n")
    start = None
    for number, line in enumerate(lines, 1):
        if line == "{":
            start = number
        elif line == "}" and start:
            head = " ".join(lines[max(0, start - 8):start - 1])
            names = re.findall(r"(\w+)\(", head)
            yield names[-1] if names else "?", start, number
            start = None


def check_sizes(path, text, code):
    count = text.count("\n")
    if count > FILE_MAX:
        yield ("file", path, count,
               "%d lines; %d is the limit" % (count, FILE_MAX))
    for name, first, last in functions(code):
        if last - first + 1 > FUNCTION_MAX:
            yield ("function", path, first, "%s() has %d lines; %d is the limit"
                   % (name, last - first + 1, FUNCTION_MAX))


def check_names(path, code):
    """A header's functions begin with its stem, its folder, mst_, or the name
    of a struct that it works on (`call_` serves for struct rpc_call)."""
    if path.suffix != ".h" or path.parts[0] not in ("src", "include"):
        return
    stem = path.stem.split("_")[0]
    folder = path.parent.name
    heads = {stem, stem.rstrip("s"), folder, folder.rstrip("s"), "mst"}
    tags = set(re.findall(r"\b(?:struct|union|enum) (\w+)", code))
    tags |= {tag.split("_", 1)[-1] for tag in tags}
    for match in DECLARATION.finditer(DECORATION.sub("", code)):
        name = match.group(1)
        if (name.split("_")[0] not in heads and not name.startswith(stem)
                and not any(name.startswith(tag + "_") for tag in tags)):
            yield ("name", path, 0, "%s() begins with none of: %s"
                   % (name, ", ".join(sorted(heads))))


def check_file(path):
    text = path.read_text()
    code = blank(text)
    yield from check_lines(path, text)
    yield from check_head(path, text)
    yield from check_sizes(path, text, code)
    yield from check_names(path, code)


def excused(exceptions, rule, path, message):
    name = re.match(r"(\w+)\(\)", message)
    keys = [str(path)] + (["%s:%s" % (path, name.group(1))] if name else [])
    used = [(rule, key) for key in keys if (rule, key) in exceptions]
    return used[0] if used else None


def main():
    exceptions = read_exceptions()
    unused = set(exceptions)
    files = wrong = 0
    for root in ROOTS:
        for path in sorted(pathlib.Path(root).rglob("*.[ch]")):
            files += 1
            for rule, where, line, message in check_file(path):
                key = excused(exceptions, rule, where, message)
                if key:
                    unused.discard(key)
                    continue
                wrong += 1
                print("%s:%d: [%s] %s" % (where, line, rule, message))
    for rule, what in sorted(unused):
        wrong += 1
        print("%s: no longer needed: %s %s" % (EXCEPTIONS, rule, what))
    print("%d files, %d breaches of style" % (files, wrong))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
