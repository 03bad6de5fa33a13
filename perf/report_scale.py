#!/usr/bin/env python3
"""A synthetic run of N kernels (default 10 M): bytes per kernel row, time and peak memory of the first `report` (which
attributes everything) and of the second (derived tables are there)."""
import os
import resource
import subprocess
import sys
import tempfile
import time

BIN = sys.argv[1] if len(sys.argv) > 1 else "build/bin"
KERNELS = sys.argv[2] if len(sys.argv) > 2 else "10000000"
with tempfile.TemporaryDirectory() as folder:
    run = os.path.join(folder, "synthetic.llmprof")
    subprocess.run([os.path.abspath(f"{BIN}/../perf/synthetic_run"), run, KERNELS], check=True)
    size = sum(os.path.getsize(os.path.join(run, "tables", name)) for name in os.listdir(os.path.join(run, "tables"))
               if name.startswith("kernel."))
    print(f"kernel table: {size / int(KERNELS):.2f} bytes per row (budget 8)")
    for label in ("first", "second"):
        begin = time.monotonic()
        process = subprocess.Popen([os.path.abspath(f"{BIN}/llmprof"), "report", run], stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        assert status == 0, status
        print(f"{label} report: {time.monotonic() - begin:.2f} s, peak memory {usage.ru_maxrss / 1024:.0f} MiB "
              "(budget 5 s, 2048 MiB)")
