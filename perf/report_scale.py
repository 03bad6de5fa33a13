#!/usr/bin/env python3
"""report_scale.py [BIN [KERNELS [MIB [--steps-only]]]]: a synthetic run of that many kernels (default 10 M): bytes per kernel
row, time and peak memory of the first `report` (which attributes everything) and of the second (answers are there). More than
MIB of memory fail; unless told otherwise nothing does. --steps-only: with ranges of steps, not of modules."""
import os
import subprocess
import sys
import tempfile
import time

BIN = sys.argv[1] if len(sys.argv) > 1 else "build/bin"
KERNELS = sys.argv[2] if len(sys.argv) > 2 else "10000000"
MIB = float(sys.argv[3]) if len(sys.argv) > 3 else float("inf")
with tempfile.TemporaryDirectory() as folder:
    run = os.path.join(folder, "synthetic.llmprof")
    subprocess.run([os.path.abspath(f"{BIN}/../perf/synthetic_run"), run, KERNELS, *sys.argv[4:5]], check=True)
    size = sum(os.path.getsize(os.path.join(run, "tables", name)) for name in os.listdir(os.path.join(run, "tables"))
               if name.startswith("kernel."))
    print(f"kernel table: {size / int(KERNELS):.2f} bytes per row (budget 8)")
    for label in ("first", "second"):
        begin = time.monotonic()
        process = subprocess.Popen([os.path.abspath(f"{BIN}/llmprof"), "report", run], stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        assert status == 0, status
        cpu = usage.ru_utime + usage.ru_stime
        print(f"{label} report: {time.monotonic() - begin:.2f} s, {cpu:.2f} s of CPU, peak memory {usage.ru_maxrss / 1024:.0f} MiB")
        if usage.ru_maxrss / 1024 > MIB:
            sys.exit(f"more than {MIB:.0f} MiB")
