#!/usr/bin/env python3
"""events.py [MILLIONS (100)] [BUILD (build)]: that many events from one thread without a pause.

Before the run the size of the log is predicted from two small ones:
    bytes(N) = bytes(2) + (N - 2) * (bytes(1 M) - bytes(2)) / (1 M - 2)      (1 M events: the middle one of five runs)
A dropped event takes no place, so N is what the log says it holds. (Times are stored as differences of one to three bytes:
on a machine that does other things too, events are farther apart and a little longer.) Checked:
    - the log has the predicted size within 5 %
    - the program's memory does not grow after the first tenth (4 MiB allowed; when the machine was so busy that events were
      dropped, all 32 MiB of buffers came into use at some time) and 64 MiB are never exceeded
    - events in the log + events counted as dropped = events raised; `llmprof check` finds the log whole"""
import json
import os
import subprocess
import sys
import tempfile
import time

from memory import Slope, rss_kib

MILLIONS = float(sys.argv[1]) if len(sys.argv) > 1 else 100
BUILD = os.path.abspath(sys.argv[2] if len(sys.argv) > 2 else "build")


def run(events, folder):
    """(size of the log, its path, memory samples, seconds)"""
    environment = dict(os.environ, NVTX_INJECTION64_PATH=f"{BUILD}/lib/llmprof/libllmprof_inject.so", LLMPROF_CAPTURE_DIR=folder)
    begin = time.monotonic()
    program = subprocess.Popen([f"{BUILD}/perf/annotated_loop", str(events // 2)], env=environment, stdout=subprocess.DEVNULL)
    samples = []
    while program.poll() is None:
        kib = rss_kib(program.pid)
        if kib is not None:
            samples.append((time.monotonic() - begin, kib))
        time.sleep(0.05)
    if program.returncode != 0:
        sys.exit(f"soak: the program ended with {program.returncode}")
    paths = [os.path.join(folder, name) for name in os.listdir(folder)]
    return sum(map(os.path.getsize, paths)), paths, samples, time.monotonic() - begin


def check(path):
    """What `llmprof check` says about a log."""
    result = subprocess.run([f"{BUILD}/bin/llmprof", "check", path, "--json"], stdout=subprocess.PIPE, text=True)
    return result.returncode, json.loads(result.stdout)


def held(events):
    """(size of the log, events in it, dropped, samples, seconds) of a run, checked."""
    with tempfile.TemporaryDirectory() as folder:
        size, paths, samples, seconds = run(events, folder)
        if len(paths) != 1:
            sys.exit(f"soak: one log expected, found {paths}")
        status, report = check(paths[0])
    dropped = sum(loss["count"] for loss in report["losses"] if loss["name"] == "buffer_full")
    return size, report["log"]["records"].get("range", 0), dropped, samples, seconds, status


failures = []
total = int(MILLIONS * 1e6)
least = held(2)
millions = [held(1_000_000) for _ in range(5)]
each = sorted((run[0] - least[0]) / (run[1] - 2) for run in millions)[2]
print(f"calibration: {least[0]} bytes with 2 events, {each:.4f} bytes for each more; "
      f"{total / 1e6:g} M events will take {(least[0] + (total - 2) * each) / 1e6:.1f} MB", flush=True)
size, events, dropped, samples, seconds, status = held(total)
predicted = least[0] + (events - 2) * each
print(f"run: {total / 1e6:g} M events in {seconds:.1f} s, {dropped} dropped ({dropped / total:.4%}), log {size / 1e6:.1f} MB, "
      f"predicted for the {events} in it {predicted / 1e6:.1f} MB ({size / predicted - 1:+.2%})")
if abs(size / predicted - 1) > 0.05:
    failures.append("the size of the log is not as predicted")
if events + dropped != total:
    failures.append(f"{total - events - dropped} events are neither in the log nor counted")
if status not in (0, 1):
    failures.append(f"llmprof check: status {status}")
if len(samples) > 40:
    slope = Slope(samples)
    print(f"memory: {slope}")
    if slope.grows(4096 if dropped == 0 else 36 * 1024) or slope.peak_kib > 65536:
        failures.append("memory is not flat")
else:
    print("memory: the run was too short to say")
for failure in failures:
    print(f"FAILED: {failure}")
sys.exit(1 if failures else 0)
