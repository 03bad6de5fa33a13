#!/usr/bin/env python3
"""Spreads the sources of one target over unity files, so that files with equal local names never meet in one.

    unity_groups.py FILES_PER_GROUP FOLDER SOURCE…   prints one group number per source, in their order, as a CMake list

What a file keeps to itself (its unnamed namespaces, its static functions) may have a name that another file also uses.
Groups are filled in order: a file goes to the first one that has room and none of its names, so that neighbours stay
together and adding a file moves few others. The names are read off the formatted text: declarations there begin in column 0.
"""
import re
import sys
from pathlib import Path

NOT_NAMES = {"if", "for", "while", "return", "static_assert", "requires", "alignas", "decltype", "sizeof", "TEST", "TEST_F",
             "TEST_P", "INSTANTIATE_TEST_SUITE_P", "MATCHER", "MATCHER_P", "noexcept", "operator"}
TYPE = re.compile(r"^(?:template\s*<.*>\s*)?(?:struct|class|union|enum(?:\s+class|\s+struct)?|using|concept)\s+(?:\[\[.*?\]\]\s*)?(\w+)")
MATCHER = re.compile(r"^MATCHER\w*\((\w+)")
VALUE = re.compile(r"(\w+)\s*(?:\(|\[|\{|=(?!=)|;|$)")


def local_names(text):
    names, scopes = set(), []
    for line in text.splitlines():
        opened = re.match(r"(?:inline )?namespace ?([\w:]*) ?(?:\{|$)", line)
        if opened:
            scopes.append(opened.group(1))
        elif line.startswith("}  // namespace"):
            scopes = scopes[:-1]
        elif ("" in scopes or line.startswith("static ")) and line[:1].isalpha():
            names |= {"::".join(scopes + [name]) for name in declared(line)}
    return names


def declared(line):
    if re.match(r"using [\w:]+;", line):
        return []  # may be said twice
    found = TYPE.match(line) or MATCHER.match(line)
    if found:
        return [found.group(1)]
    if line.startswith("constexpr") and "(" not in line.partition("=")[0]:
        return re.findall(r"(\w+)(?:\[\w*\])? ?(?==|\{)", line)  # one line may name several
    line = re.sub(r"^template\s*<[^()]*?>\s*(?=\w|$)", "", line)
    return [name for name in VALUE.findall(line) if name not in NOT_NAMES and not name.isdigit()][:1]


def main():
    most, folder, sources = int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]
    # As few groups as fit, all about as full: a last group of one file would cost as much as a full one.
    count = max(1, -(-len(sources) // most))
    room = -(-len(sources) // count)
    groups, places = [[] for _ in range(count)], []
    for source in sources:
        names = local_names((folder / source).read_text(encoding="utf-8"))
        free = [i for i, group in enumerate(groups) if not any(names & other for other in group)]
        place = next((i for i in free if len(groups[i]) < room), min(free, key=lambda i: len(groups[i]), default=None))
        if place is None:
            place = len(groups)
            groups.append([])
        groups[place].append(names)
        places.append(place)
    print(";".join(map(str, places)), end="")


main()
