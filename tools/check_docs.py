#!/usr/bin/env python3
"""Documents may name files and symbols, never line numbers; every path of ours they name must exist, every relative
link must resolve, and every verb has a manual page."""
import pathlib
import re
import subprocess
import sys

root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
OURS = r"(?:libs|apps|cmake|docs|tools|tests|perf|include|assets)/[\w./*{},-]*\w"
problems = []
pages = subprocess.run(["git", "-C", str(root), "ls-files", "*.md"], capture_output=True, text=True).stdout.split()
for page in pages:
    text = (root / page).read_text()
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        if not target.startswith(("http:", "https:")) and not ((root / page).parent / target).exists():
            problems.append(f"{page}: link to {target} resolves to nothing")
    for quoted in re.findall(r"`(" + OURS + r")`", text):
        if "*" in quoted or "{" in quoted or "<" in quoted:
            continue
        if not (root / quoted).exists():
            problems.append(f"{page}: names {quoted}, which does not exist")
    if re.search(r"`[\w/]+\.(?:cpp|h|py):\d+`", text):
        problems.append(f"{page}: names a line number")
for verb in sorted((root / "apps/llmprof").glob("cmd_*.cpp")):
    manual = root / "docs/manual" / (verb.stem[4:] + ".md")
    if not manual.exists():
        problems.append(f"{verb.relative_to(root)}: no {manual.relative_to(root)}")
    elif "## Examples" not in manual.read_text():
        problems.append(f"{manual.relative_to(root)}: no '## Examples'")
for line in problems:
    print(line)
print(f"check_docs: {len(pages)} pages, {len(problems)} problems")
sys.exit(1 if problems else 0)
