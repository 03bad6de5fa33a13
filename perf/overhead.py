#!/usr/bin/env python3
"""The demo workload under `llmprof record` against the same run alone: interleaved pairs, ratio of the time the program
itself measured from its first pass to its last token, median of the ratios with its interquartile range."""
import json
import os
import statistics
import subprocess
import sys
import tempfile

BIN = sys.argv[1] if len(sys.argv) > 1 else "build/bin"
PAIRS = int(sys.argv[2]) if len(sys.argv) > 2 else 41
PRESET = sys.argv[3] if len(sys.argv) > 3 else "demo"
workload = [os.path.abspath(f"{BIN}/llmprof-workload"), "infer", "--preset", PRESET, "--json"]
llmprof = os.path.abspath(f"{BIN}/llmprof")


def seconds(words, folder):
    output = subprocess.run(words, cwd=folder, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    result = json.loads(output)
    return (result["ttft_ns"] + result["decode_ns"]) / 1e9


ratios = []
with tempfile.TemporaryDirectory() as folder:
    for pair in range(PAIRS):
        recorded = [llmprof, "record", "-f", "-o", "x", "--no-peaks", "--", *workload]
        order = (workload, recorded) if pair % 2 == 0 else (recorded, workload)
        times = {id(words): seconds(words, folder) for words in order}
        ratios.append(times[id(recorded)] / times[id(workload)])
        print(f"pair {pair + 1}/{PAIRS}: alone {times[id(workload)]:.3f} s, recorded {times[id(recorded)]:.3f} s, "
              f"ratio {ratios[-1]:.4f}", file=sys.stderr)
quartiles = statistics.quantiles(ratios, n=4)
print(f"record overhead: median ratio {statistics.median(ratios):.4f} "
      f"(quartiles {quartiles[0]:.4f} to {quartiles[2]:.4f}, {PAIRS} interleaved pairs; budget 1.02)")
