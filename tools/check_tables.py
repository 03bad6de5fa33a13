#!/usr/bin/env python3
"""A number is described once, in libs/analyze/tables/*.md. Finds JSON keys and column titles that libs/report spells by
hand: `{"time_ns", …}` in JSON, `{"GPU %"}` in a text table. What still does is listed below; numbers may shrink, not grow."""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
ALLOWED = {
    # file: how many, and why
    "libs/report/bench.cpp": (11, "words of properties, keys of a CSV in its order"),
    "libs/report/design/page.cpp": (37, "the config of a model is no plain struct; keys of a CSV in its order"),
    "libs/report/design/sweep.cpp": (7, "keys of a CSV in its order"),
    "libs/report/diff.cpp": (10, "the document, beside its rows"),
    "libs/report/explain.cpp": (4, "a rule has a function among its fields"),
    "libs/report/hardware.cpp": (6, "counters that have keys of their own, by name"),
    "libs/report/host.cpp": (3, "a row for what is too short to show"),
    "libs/report/json.cpp": (32, "what the JSON says in another shape than the structs"),
    "libs/report/measured.cpp": (1, "one struct, several objects"),
    "libs/report/plot_axis.cpp": (1, "an axis has a title, too"),
    "libs/report/roofline.cpp": (8, "the document, beside its rows"),
    "libs/report/table.cpp": (11, "writes the descriptions themselves"),
    "libs/report/text.cpp": (20, "names of the report's parts"),
    "libs/report/tables.cpp": (7, "rows below an operator"),
    "libs/report/telemetry_lines.cpp": (16, "of `llmprof monitor`, by metric"),
    "libs/report/waterfall.cpp": (10, "a table whose columns are stages, and means of one sample"),
}
KEY = re.compile(r'\{\s*"([a-z][a-z0-9_]*)",\s*(?!nullptr)[^"{}]')
TITLE = re.compile(r'\{\s*"([^"]+)"(?:,\s*Align::k\w+)?(?:,\s*(?:true|false))?\s*\}')

described = {}
for file in sorted((root / "libs/analyze/tables").glob("*.md")):
    path = ""
    for line in file.read_text().splitlines():
        if line.startswith("## "):
            path = line[3:].split(":")[0]
        cells = [cell.strip() for cell in line.split("|")[1:-1]] if line.startswith("|") else []
        if len(cells) >= 2 and cells[0] not in ("key", "") and not cells[0].startswith("--"):
            for word in filter(None, cells[:2]):
                described.setdefault(word, f"{file.name}, {path}")

problems, found = [], {}
for file in sorted((root / "libs/report").rglob("*.cpp")):
    if file.stem.endswith("_test"):
        continue
    name = file.relative_to(root).as_posix()
    text = file.read_text()
    for match in [*KEY.finditer(text), *TITLE.finditer(text)]:
        if match.group(1) in described:
            found.setdefault(name, []).append((text.count("\n", 0, match.start()) + 1, match.group(1)))
for name, places in found.items():
    allowed = ALLOWED.get(name, (0, ""))[0]
    if len(places) > allowed:
        problems += [f'{name}:{line}: "{word}" is described in {described[word]}: draw or describe() it from there'
                     for line, word in places]
if "--count" in sys.argv:
    for name, places in sorted(found.items()):
        print(name, len(places))
for line in problems:
    print(line)
print(f"check_tables: {len(described)} words, {len(problems)} problems")
sys.exit(1 if problems else 0)
