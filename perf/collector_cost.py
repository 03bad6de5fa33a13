#!/usr/bin/env python3
"""Memory the collector adds to a process, whatever the number of events, and the delay it adds to the exit."""
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

BIN = sys.argv[1] if len(sys.argv) > 1 else "build/bin"
loop = os.path.abspath(f"{BIN}/../perf/annotated_loop")
library = os.path.abspath(f"{BIN}/../lib/llmprof/libllmprof_inject.so")


def once(events, collect, pause_ns=0):
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ)
        if collect:
            environment |= {"NVTX_INJECTION64_PATH": library, "LLMPROF_CAPTURE_DIR": folder}
        process = subprocess.Popen([loop, str(events), str(pause_ns)], env=environment, stdout=subprocess.PIPE)
        output = process.stdout.read()
        process.wait()
        ended = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        result = json.loads(output)
        log = sum(os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder))
    return result["rss_peak_kb"] / 1024, (ended - result["end_ns"]) / 1e6, result["loop_ns"] / events, log / events


print("events      memory alone  with collector   added    exit alone  with collector   ns per push+pop  log bytes")
for events in (100_000, 1_000_000, 10_000_000):
    alone = [once(events, False) for _ in range(5)]
    seen = [once(events, True) for _ in range(5)]
    memory = [statistics.median(row[0] for row in rows) for rows in (alone, seen)]
    delay = [statistics.median(row[1] for row in rows) for rows in (alone, seen)]
    cost = [statistics.median(row[2] for row in rows) for rows in (alone, seen)]
    print(f"{events:<11} {memory[0]:8.1f} MiB  {memory[1]:10.1f} MiB {memory[1] - memory[0]:7.1f} MiB "
          f"{delay[0]:8.2f} ms {delay[1]:12.2f} ms  {cost[0]:7.1f} -> {cost[1]:.1f}  {seen[0][3]:6.2f}")
print("budget: at most 64 MiB added, at most 200 ms of exit delay")
