#!/usr/bin/env python3
"""How much longer steps are outside of rests than in them, as libs/analyze/sections/cost.cpp tells it from a run: for a collector that is not ours.

    step_ratio.py STEPS REST_MS NAME       STEPS: begin and end of each, ns; every other REST_MS of that clock is a rest

Prints a row of a Markdown table: the mean ratio with its 95 % interval, rests, steps in them."""
import bisect
import math
import statistics
import sys

FEWEST = 3
SWITCHING_NS = 2_000_000  # after the moment, in which nothing is compared


def main():
    steps = [tuple(map(int, line.split())) for line in open(sys.argv[1])]
    rest = int(sys.argv[2]) * 1_000_000
    begins = [begin for begin, _ in steps]

    def window(begin_ns):
        """Median length of the steps in a window, and their number."""
        first = bisect.bisect_left(begins, begin_ns + min(SWITCHING_NS, rest // 10))
        lengths = []
        for begin, end in steps[first:]:
            if begin >= begin_ns + rest:
                break
            if end <= begin_ns + rest:
                lengths.append(end - begin)
        return (statistics.median(lengths), len(lengths)) if len(lengths) >= FEWEST else (None, 0)

    logs, inside = [], 0
    for number in range(begins[0] // rest, steps[-1][1] // rest):
        if number % 2 == 0:
            continue
        (before, _), (between, count), (after, _) = (window((number + shift) * rest) for shift in (-1, 0, 1))
        if before and between and after:
            logs.append((math.log(before) + math.log(after)) / 2 - math.log(between))
            inside += count
    mean = statistics.mean(logs)
    squares = sum((log - mean) ** 2 for log in logs)
    squares += 2 * max(0, sum((a - mean) * (b - mean) for a, b in zip(logs, logs[1:])))
    error = (1.96 + 2.7 / (len(logs) - 1)) * math.sqrt(squares / (len(logs) - 1) / len(logs))
    print(f"| {sys.argv[3]} | {math.exp(mean):.4f} [{math.exp(mean - error):.4f}, {math.exp(mean + error):.4f}] | {len(logs)} | {inside} |")


main()
