#!/usr/bin/env python3
"""Documents that can be checked against the tree are.

  - every command of ./run stands in README.md's table, and no other
  - every relative link in a .md file leads somewhere
  - every folder of src has a README.md, and pages name only files and
    functions that exist
  - the man pages name every subcommand and every option of the program
  - docs/ops.md is what `muster ops --markdown` prints
  - CHANGELOG.md has an entry for the version that is built

Usage: tools/check_docs.py build/muster
"""
import pathlib
import re
import subprocess
import sys

LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)[^)]*\)")
FUNCTION = re.compile(r"`(\w+)\(\)`")
SOURCE = re.compile(r"`((?:[\w-]+/)*[\w-]+\.(?:c|h|py|proto|md|txt))`")

wrong = []
words = set()


def complain(where, what):
    wrong.append("%s: %s" % (where, what))


def output(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout


def tracked(suffix):
    names = output("git", "ls-files", "--cached", "--others",
                   "--exclude-standard", "--", "*" + suffix).split("\n")
    return [pathlib.Path(n) for n in names if n and pathlib.Path(n).exists()]


def check_readme_commands():
    run = pathlib.Path("run").read_text()
    case = re.search(r"^case .*?\n(.*?)\)", run, re.M | re.S).group(1)
    have = set(re.findall(r"\w+", case)) | {"help"}
    readme = pathlib.Path("README.md").read_text()
    told = set(re.findall(r"^\| `\./run (\w+)", readme, re.M))
    if have - told:
        complain("README.md", "the table lacks ./run %s"
                 % ", ".join(sorted(have - told)))
    if told - have:
        complain("README.md", "./run has no %s"
                 % ", ".join(sorted(told - have)))


def check_links():
    for path in tracked(".md"):
        for target in LINK.findall(path.read_text()):
            if re.match(r"\w+:", target):
                continue
            if not (path.parent / target).exists():
                complain(path, "a link to nowhere: %s" % target)


def check_folders():
    """A README names files of its own folder, or from src, or from the root."""
    for folder in sorted(p for p in pathlib.Path("src").iterdir()
                         if p.is_dir()):
        readme = folder / "README.md"
        if not readme.exists():
            complain(folder, "has no README.md")
            continue
        check_sources(readme, [folder, pathlib.Path("src"), pathlib.Path()])
    for page in ["README.md", "docs/architecture.md", "docs/adding-an-op.md"]:
        check_sources(pathlib.Path(page),
                      [pathlib.Path("src"), pathlib.Path()])


def source_words():
    """Every word of the C code: a function that is named must be among them."""
    return {word for path in tracked(".c") + tracked(".h")
            for word in re.findall(r"\w+", path.read_text())}


def check_sources(page, roots):
    for name in FUNCTION.findall(page.read_text()):
        if "NAME" not in name and name not in words:
            complain(page, "no such function: %s()" % name)
    for name in SOURCE.findall(page.read_text()):
        if "NAME" not in name and not any((root / name).exists() for root in roots):
            complain(page, "no such file: %s" % name)


def man_text(page):
    """The words of an mdoc page, with its macros dropped."""
    text = pathlib.Path("docs/man", page).read_text()
    return re.sub(r"Fl -(?=\w)", "--", text)


# The page of each subcommand that has options.
MAN_PAGES = {
    "serve": "muster-serve.1",
    "add-worker": "muster-add-worker.1",
    "remove-worker": "muster-add-worker.1",
    "status": "muster-status.1",
    "train": "muster-train.1",
}


def check_man(program):
    commands = re.findall(r"^  ([\w-]+) ", output(program, "help"), re.M)
    page = man_text("muster.1")
    for command in commands:
        if not re.search(r"^\.It Cm %s\b" % command, page, re.M):
            complain("muster.1", "does not explain %s" % command)
    for command, name in MAN_PAGES.items():
        check_options(output(program, command, "--help"), name)


def check_options(text, name):
    page = man_text(name)
    for option in re.findall(r"^  --(\w+)", text, re.M):
        if not re.search(r"^\.It --%s\b" % option, page, re.M):
            complain(name, "does not explain --%s" % option)


def check_ops(program):
    page = pathlib.Path("docs/ops.md")
    if not page.exists() or page.read_text() != output(program, "ops",
                                                       "--markdown"):
        complain(page, "out of date: %s ops --markdown > %s" % (program, page))


def check_changelog(program):
    version = output(program, "version").split()[1]
    if "## %s" % version not in pathlib.Path("CHANGELOG.md").read_text():
        complain("CHANGELOG.md", "has no entry for %s" % version)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    program = sys.argv[1]
    words.update(source_words())
    check_readme_commands()
    check_links()
    check_folders()
    check_man(program)
    check_ops(program)
    check_changelog(program)
    for line in wrong:
        print(line)
    print("%d faults in the documents" % len(wrong))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
