#!/usr/bin/env python3
"""How long `record` takes after the program ended, when logs are read at the end and while it runs: 10 M range events."""
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

BIN = sys.argv[1] if len(sys.argv) > 1 else "build/bin"
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 3
PUSHES = 5_000_000
PAUSE_NS = 5_000  # 25 s and more for the loop: an hour-long job has more time for the same work
llmprof = os.path.abspath(f"{BIN}/llmprof")
loop = os.path.abspath(f"{BIN}/../perf/annotated_loop")
NEVER = str(1 << 60)


def once(begin_at):
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ) | {"LLMPROF_LIVE_INGEST_BYTES": begin_at, "LLMPROF_CACHE_DIR": folder}
        done = subprocess.run([llmprof, "record", "--no-peaks", "--no-host", "--json", "-o", f"{folder}/x", "--", loop,
                               str(PUSHES), str(PAUSE_NS)], env=environment, capture_output=True, text=True, check=True)
        ended = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        tally = json.loads(done.stderr.splitlines()[-1])
        seconds = (ended - json.loads(done.stdout)["end_ns"]) / 1e9
        return seconds, tally["followed_bytes"] / tally["log_bytes"], tally["coverage"]["ranges"]


rows = {"read at the end": [], "read while it runs": []}
for _ in range(ROUNDS):  # in turn, so that a slow phase of the machine hits both
    rows["read at the end"].append(once(NEVER))
    rows["read while it runs"].append(once(str(16 << 20)))
typical = {}
for name, results in rows.items():
    seconds = sorted(result[0] for result in results)
    typical[name] = statistics.median(seconds)
    print(f"{name:<20} {typical[name]:6.2f} s after the program ({seconds[0]:.2f} to {seconds[-1]:.2f}), "
          f"{statistics.median(result[1] for result in results):.0%} of the bytes read before, {results[0][2]} ranges")
print(f"ratio {typical['read at the end'] / typical['read while it runs']:.1f}")
