#!/usr/bin/env python3
"""How fast `llmprof import` reads a PyTorch trace, and in how much memory: python3 perf/import_rate.py [BUILD [SIZE]]

BUILD is the build folder (build), SIZE that of the generated trace (1G). Measured from page cache: the reader alone, the
whole import (parsing, joining, Parquet) on one core and on two, beside Python's json module on a tenth of the size.
Wall time counts on an idle machine; CPU time is printed beside it. Memory is the sum of the peaks of both processes."""
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
PYTHON_JSON = "import json, sys; json.load(open(sys.argv[1]))"


def peaks(pid, seen):
    """Peak memory in KiB of a process and its children, as far as they live."""
    for one in [pid, *children(pid)]:
        try:
            status = Path(f"/proc/{one}/status").read_text()
        except OSError:
            continue
        for line in status.splitlines():
            if line.startswith("VmHWM:"):
                seen[one] = max(seen.get(one, 0), int(line.split()[1]))


def children(pid):
    try:
        return [int(c) for c in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def measure(command, cores):
    """Wall and CPU seconds, and the sum of the peaks in MiB."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                               preexec_fn=lambda: os.sched_setaffinity(0, cores))
    seen = {}
    while process.poll() is None:
        peaks(process.pid, seen)
        time.sleep(0.02)
    wall = time.monotonic() - begin
    if process.returncode not in (0, 3):
        sys.exit(f"{command}: status {process.returncode}\n{process.stderr.read().decode()}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, cpu, sum(seen.values()) / 1024


def show(what, size, figures):
    wall, cpu, memory = figures
    print(f"{what:44} {size / wall / 1e6:7.0f} MB/s   {size / cpu / 1e6:6.0f} MB per CPU second   "
          f"peak {memory:6.0f} MiB   {wall:6.2f} s", flush=True)
    return size / wall / 1e6


def main():
    build = Path(sys.argv[1] if len(sys.argv) > 1 else "build")
    size = sys.argv[2] if len(sys.argv) > 2 else "1G"
    cores = sorted(os.sched_getaffinity(0))
    one, two = set(cores[:1]), set(cores[:2])
    with tempfile.TemporaryDirectory(prefix="import-rate-") as folder:
        trace, small, run = (os.path.join(folder, name) for name in ("trace.json", "small.json", "run.llmprof"))
        make = [sys.executable, str(HERE / "make_kineto.py")]
        subprocess.run([*make, trace, size], check=True)
        large = os.path.getsize(trace)
        subprocess.run([*make, small, str(large // 10)], check=True)
        print(f"trace of {large / 1e6:.0f} MB from page cache, {len(cores)} cores")
        reader = [str(build / "perf" / "import_reader"), trace]
        for where, name in ((one, "one core"), (two, "two cores")):
            show(f"reader alone, {name}", large, measure(reader, where))
        rates = {}
        for where, name in ((one, "one core"), (two, "two cores")):
            shutil.rmtree(run, ignore_errors=True)
            rates[name] = show(f"llmprof import, {name}", large,
                               measure([str(build / "bin" / "llmprof"), "import", trace, "-o", run], where))
        tenth = os.path.getsize(small)
        python = show("Python json.load, a tenth of the size", tenth, measure([sys.executable, "-c", PYTHON_JSON, small], one))
        print(f"import is {rates['one core'] / python:.1f} times as fast as Python's json on one core, "
              f"{rates['two cores'] / python:.1f} times on two; asked for: 200 MB/s on one, 350 on two, 512 MiB")


if __name__ == "__main__":
    main()
