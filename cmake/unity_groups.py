#!/usr/bin/env python3
"""Spreads the sources of one target over unity files, so that files with equal local names never meet in one.

    unity_groups.py FILES_PER_GROUP SOURCE…   prints one group number per source, in their order, as a CMake list

What a file keeps to itself (its unnamed namespaces, its static functions) may have a name that another file, or a header
which that one includes, also uses.
Groups are filled in order: a file goes to the first one that has room and none of its names, so that neighbours stay
together and adding a file moves few others. The names are read off the formatted text: declarations there begin in column 0.
"""
import functools
import re
import sys
from pathlib import Path

LIBS = Path(__file__).resolve().parents[1] / "libs"
NOT_NAMES = {"if", "for", "while", "return", "static_assert", "requires", "alignas", "decltype", "sizeof", "TEST", "TEST_F",
             "TEST_P", "INSTANTIATE_TEST_SUITE_P", "MATCHER", "MATCHER_P", "noexcept", "operator"}
TYPE = re.compile(r"^(?:template\s*<.*>\s*)?(?:struct|class|union|enum(?:\s+class|\s+struct)?|using|concept)\s+(?:\[\[.*?\]\]\s*)?(\w+)")
MATCHER = re.compile(r"^MATCHER\w*\((\w+)")
VALUE = re.compile(r"(\w+)\s*(?:\(|\[|\{|=(?!=)|;|$)")


def names_in(text, only_local, by_using=False):
    names, scopes = set(), []
    for line in text.splitlines():
        opened = re.match(r"(?:inline )?namespace ?([\w:]*) ?(?:\{|$)", line)
        if opened:
            scopes.append(opened.group(1))
        elif line.startswith("}  // namespace"):
            scopes = scopes[:-1]
        elif ("" in scopes or line.startswith("static ") or not only_local) and line[:1].isalpha():
            names |= {"::".join([scope for scope in scopes if scope] + [name]) for name in declared(line, by_using)}
    return names


def included(text):
    return re.findall(r'^#include "([^"]+)"', text, re.M)


@functools.cache
def names_of_header(header):
    """What it declares, and what it takes in."""
    path = LIBS / header
    if not path.exists():
        return frozenset()
    text = path.read_text(encoding="utf-8")
    return frozenset(names_in(text, False)).union(*map(names_of_header, included(text)))


class File:
    def __init__(self, path):
        text = Path(path).read_text(encoding="utf-8")
        self.local = names_in(text, True)
        # "using a::b" may be said twice, but not beside a b.
        self.seen = names_in(text, True, by_using=True).union(*map(names_of_header, included(text)))

    def clashes(self, other):
        return bool(self.local & (other.local | other.seen) or self.seen & other.local)


def declared(line, by_using):
    used = re.match(r"using (?!namespace)[\w:]*?(\w+);", line)
    if used or by_using:
        return [used.group(1)] if used and by_using else []
    found = TYPE.match(line) or MATCHER.match(line)
    if found:
        return [found.group(1)]
    if line.startswith("constexpr") and "(" not in line.partition("=")[0]:
        return re.findall(r"(\w+)(?:\[\w*\])? ?(?==|\{)", line)  # one line may name several
    line = re.sub(r"^template\s*<[^()]*?>\s*(?=\w|$)", "", line)
    return [name for name in VALUE.findall(line) if name not in NOT_NAMES and not name.isdigit()][:1]


def main():
    most, sources = int(sys.argv[1]), sys.argv[2:]
    # As few groups as fit, all about as full: a last group of one file would cost as much as a full one.
    count = max(1, -(-len(sources) // most))
    room = -(-len(sources) // count)
    groups, places = [[] for _ in range(count)], []
    for source in sources:
        file = File(source)
        free = [i for i, group in enumerate(groups) if not any(file.clashes(other) for other in group)]
        place = next((i for i in free if len(groups[i]) < room), min(free, key=lambda i: len(groups[i]), default=None))
        if place is None:
            place = len(groups)
            groups.append([])
        groups[place].append(file)
        places.append(place)
    print(";".join(map(str, places)), end="")


main()
