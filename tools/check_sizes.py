#!/usr/bin/env python3
"""Budgets of CONTRIBUTING.md: a file over 600 lines (tests 900) or a function over 80 lines fails, unless it stands in
the list below with its reason. Entries may shrink, not grow."""
import pathlib
import re
import subprocess
import sys

root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
ALLOWED = {
    # path: (lines allowed, reason)
}
FILE_LIMIT, TEST_LIMIT, FUNCTION_LIMIT = 600, 900, 80


def functions(text):
    """(name, lines) of bodies that open at column 0..2 and close at the same indentation; good enough for our format."""
    lines = text.splitlines()
    opening = None
    for number, line in enumerate(lines):
        head = re.match(r"^(\s{0,2})[\w:<>,&*~\[\]\s()\"=.+-]*\)\s*(const\s*)?(noexcept\s*)?(->\s*[\w:<>]+\s*)?\{$", line)
        if opening is None and head and not re.match(r"^\s*(if|for|while|switch|namespace|struct|class|enum)\b", line):
            opening = (number, head.group(1), line.strip())
        elif opening and line == opening[1] + "}":
            yield opening[2], number - opening[0] + 1
            opening = None


problems = []
listed = subprocess.run(["git", "-C", str(root), "ls-files", "*.cpp", "*.h", "*.c", "*.py"], capture_output=True,
                        text=True).stdout.split()
for name in listed:
    path = root / name
    if not path.exists():
        continue
    text = path.read_text(errors="replace")
    count = text.count("\n")
    test = "test" in path.stem or name.startswith("tests/")
    limit = ALLOWED.get(name, (TEST_LIMIT if test else FILE_LIMIT, ""))[0]
    if count > limit:
        problems.append(f"{name}: {count} lines, limit {limit}")
    if path.suffix == ".cpp" and not test:
        for function, length in functions(text):
            if length > FUNCTION_LIMIT:
                problems.append(f"{name}: {length} lines in: {function}")
for line in problems:
    print(line)
print(f"check_sizes: {len(listed)} files, {len(problems)} problems")
sys.exit(1 if problems else 0)
