#!/usr/bin/env python3
"""loop.py [SECONDS (3600)] [BUILD (build)] [PAUSE_NS (20000)]: an annotated loop under `llmprof record`, as a service would
run. Memory of the program and of llmprof is read every second; neither may grow (memory.Slope, 1 MiB allowed in the
program, 8 MiB in llmprof) and the run must be whole at the end."""
import json
import os
import subprocess
import sys
import tempfile
import time

from memory import Slope, children, rss_kib

SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 3600
BUILD = os.path.abspath(sys.argv[2] if len(sys.argv) > 2 else "build")
PAUSE_NS = int(sys.argv[3]) if len(sys.argv) > 3 else 20_000
llmprof = f"{BUILD}/bin/llmprof"

failures = []
with tempfile.TemporaryDirectory(dir=os.environ.get("SOAK_DIR")) as folder:
    words = [llmprof, "record", "-o", "soak", "--no-peaks", "--json", "--", f"{BUILD}/perf/annotated_loop", str(10**15),
             str(PAUSE_NS), str(int(SECONDS))]
    print(f"loop: {' '.join(words)}", flush=True)
    begin = time.monotonic()
    recorder = subprocess.Popen(words, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    samples = {"program": [], "llmprof": []}
    target = None
    while recorder.poll() is None:
        for pid in children(recorder.pid) if target is None else ():
            if os.path.basename(os.readlink(f"/proc/{pid}/exe")) == "annotated_loop":
                target = pid
        now = time.monotonic() - begin
        alive = rss_kib(target) if target is not None else None
        if alive is not None:  # only while the program runs: what llmprof needs to finish a run is another figure
            samples["program"].append((now, alive))
            own = rss_kib(recorder.pid)
            if own is not None:
                samples["llmprof"].append((now, own))
        time.sleep(min(1.0, SECONDS / 100))
    ended = time.monotonic() - begin
    last = samples["program"][-1][0] if samples["program"] else 0
    tally = json.loads(recorder.stderr.read().strip().splitlines()[-1])
    print(f"loop: {ended:.0f} s, of which llmprof needed {ended - last:.1f} s after the program's end; tally {json.dumps(tally)}")
    if recorder.returncode != 0:
        failures.append(f"llmprof record: status {recorder.returncode}")
    for who, allowed in (("program", 1024), ("llmprof", 8192)):
        if len(samples[who]) < 40:
            failures.append(f"{who}: too few samples")
            continue
        slope = Slope(samples[who])
        print(f"memory of {who}: {slope}")
        if slope.grows(allowed):
            failures.append(f"memory of {who} grows")
    status = subprocess.run([llmprof, "check", "soak"], cwd=folder).returncode
    if status not in (0, 1):
        failures.append(f"llmprof check: status {status}")
for failure in failures:
    print(f"FAILED: {failure}")
sys.exit(1 if failures else 0)
