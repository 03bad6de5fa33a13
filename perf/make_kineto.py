#!/usr/bin/env python3
"""A PyTorch trace of any size: python3 perf/make_kineto.py OUT SIZE [TRACE.json.gz …]

The events of real traces are repeated with fresh times, durations, ids and correlations, so that nothing repeats but
names and shapes. SIZE is in bytes or with K, M, G. The traces are those of tests/imports unless others are named."""
import gzip
import random
import re
import sys
from pathlib import Path

IMPORTS = Path(__file__).resolve().parent.parent / "tests" / "imports"
DEFAULT = ["kineto_llama_full.json.gz", "kineto_llama_train.json.gz"]
# What differs from one repetition to the next: times, durations and ids.
SLOTS = re.compile(rb'("ts": |"dur": |"correlation": |"External id": |"Ev Idx": |"Python id": |"Python parent id": |"id": )'
                   rb"([\d.]+)")
ID, TIME, DURATION = range(3)
KINDS = {b'"ts": ': TIME, b'"dur": ': DURATION}


def load(path):
    opened = gzip.open(path) if str(path).endswith(".gz") else open(path, "rb")
    with opened as file:
        return file.read()


def split(text):
    """Header up to the bracket of the events, the events, and what follows."""
    begin = text.index(b'"traceEvents": [') + len(b'"traceEvents": [')
    end = text.rindex(b"]")
    return text[:begin], text[begin:end].strip(), text[end:]


class Template:
    """Events as one format string with a number per slot."""

    def __init__(self, events):
        self.numbers, self.kinds = [], []
        self.format = SLOTS.sub(self.slot, events.replace(b"%", b"%%"))
        times = [n for n, kind in zip(self.numbers, self.kinds) if kind == TIME]
        self.first, self.length = min(times), max(times) - min(times) + 1000
        self.ids = max(n for n, kind in zip(self.numbers, self.kinds) if kind == ID) + 1
        self.numbers = [n - self.first if kind == TIME else n for n, kind in zip(self.numbers, self.kinds)]

    def slot(self, match):
        kind = KINDS.get(match[1], ID)
        self.numbers.append(int(match[2]) if kind == ID else float(match[2]))
        self.kinds.append(kind)
        return match[1] + (b"%d" if kind == ID else b"%.3f")

    def write(self, time, first_id, stretch):
        """Times are stretched, so that what lies within something stays there, but no number comes twice."""
        add, factor = (first_id, time, 0.0), (1, stretch, stretch)
        return self.format % tuple([add[kind] + n * factor[kind] for n, kind in zip(self.numbers, self.kinds)])


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    size = sys.argv[2]
    wanted = int(float(size[:-1]) * units[size[-1]]) if size[-1] in units else int(size)
    parts = [split(load(p)) for p in sys.argv[3:] or [IMPORTS / name for name in DEFAULT]]
    templates = [Template(events) for _, events, _ in parts]
    time, first_id, turn = templates[0].first, 0, 0
    chance = random.Random(7)
    with open(sys.argv[1], "wb") as out:
        out.write(parts[0][0])
        while True:
            template = templates[turn % len(templates)]
            out.write((b",\n  " if turn else b"\n  ") + template.write(time, first_id, 1 + chance.random() / 4))
            time, first_id, turn = time + template.length * 1.25, first_id + template.ids, turn + 1
            if out.tell() >= wanted:
                break
        out.write(b"\n  " + parts[0][2])


if __name__ == "__main__":
    main()
