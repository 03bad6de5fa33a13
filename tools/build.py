#!/usr/bin/env python3
"""Runs ninja and says how far it is and how long it still takes: tools/build.py FOLDER JOBS [TARGET…]

Steps are counted, not weighed: groups of files take about equally long, so what is left is what the mean says.
"""
import os
import re
import subprocess
import sys
import time


def clock(seconds):
    return f"{int(seconds)} s" if seconds < 60 else f"{int(seconds) // 60} min {int(seconds) % 60:02} s"


def main():
    folder, jobs, *targets = sys.argv[1:]
    terminal, begin, shown = sys.stdout.isatty(), time.monotonic(), 0.0
    environment = dict(os.environ, NINJA_STATUS="[%f/%t] ")
    ninja = subprocess.Popen(["ninja", "-C", folder, "-j", jobs, *targets], stdout=subprocess.PIPE, text=True, env=environment,
                             errors="replace")
    done = total = 0
    for line in ninja.stdout:
        step = re.match(r"\[(\d+)/(\d+)\] ", line)
        if not step:  # what a compiler said
            if not line.startswith(("ninja: Entering", "ninja: no work")):
                print(("\n" if terminal and shown else "") + line, end="", flush=True)
            continue
        done, total = int(step[1]), int(step[2])
        now = time.monotonic()
        if 0 < done < total and now - shown >= (0.2 if terminal else 15):
            spent = now - begin
            left = f", about {clock(spent / done * (total - done))} left" if done >= 8 else ""
            text = f"build: {done} of {total} steps, {clock(spent)}{left}"
            print(f"\r\033[K{text}" if terminal else text, end="" if terminal else "\n", flush=True)
            shown = now
    status = ninja.wait()
    if total:
        print(("\r\033[K" if terminal else "") + f"build: {done} of {total} steps in {clock(time.monotonic() - begin)}")
    return status


try:
    sys.exit(main())
except KeyboardInterrupt:  # ninja has had it, too
    sys.exit(130)
