#!/usr/bin/env python3
"""What watching from outside costs: CPU time of the recorder's thread llmprof-host as a share of one core, and the program's
slow-down as the median ratio of interleaved pairs (recorded with the host sampler, recorded with --no-host), for a busy
program of a few threads, of 200 threads and of 50 processes, with and without stack samples.

    host_cost.py [BIN] [SECONDS] [PAIRS]        about PAIRS * 2 * SECONDS for each of six lines
"""
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time

BIN = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "build/bin")
SECONDS = float(sys.argv[2]) if len(sys.argv) > 2 else 20
PAIRS = int(sys.argv[3]) if len(sys.argv) > 3 else 5
LOAD = os.path.join(os.path.dirname(BIN), "perf", "host_load")
CORES = len(os.sched_getaffinity(0))
BUDGET = 0.02  # of one core, stacks at 99 Hz included
SHAPES = (("threads = cores", 1, CORES), ("200 threads", 1, 200), ("50 processes", 50, 1))


def host_thread(pid):
    """Nanoseconds of CPU time that the thread llmprof-host of a process has used; None if there is none."""
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/comm") as file:
                if file.read().strip() != "llmprof-host":
                    continue
            with open(f"/proc/{pid}/task/{task}/schedstat") as file:
                return int(file.read().split()[0])
    except OSError:
        pass
    return None


def run(command, options, folder):
    """Seconds the program measured itself, and the share of one core that llmprof-host used meanwhile."""
    words = [os.path.join(BIN, "llmprof"), "record", "-f", "-o", "x", "--no-peaks", "--no-ingest", *options, "--", *command]
    program = subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    first = last = None
    while program.poll() is None:
        used, now = host_thread(program.pid), time.monotonic()
        if used is not None:
            first = first or (used, now)
            last = (used, now)
        time.sleep(0.05)
    share = (last[0] - first[0]) / 1e9 / (last[1] - first[1]) if first and last != first else 0.0
    return float(program.stdout.read()), share


def alone(command):
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main():
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "?")
    print(f"{model}, {CORES} cores, Linux {platform.release()}; {SECONDS:g} s a run, {PAIRS} interleaved pairs")
    with tempfile.TemporaryDirectory() as folder:
        rounds = int(1000 * SECONDS / alone([LOAD, "1", str(CORES), "1000"]))
        for name, processes, threads in SHAPES:
            command = [LOAD, str(processes), str(threads), str(rounds)]
            for what, options in (("usage and stacks at 99 Hz", []), ("usage only", ["--no-stacks"])):
                ratios, shares = [], []
                for pair in range(PAIRS):
                    times = {}
                    for host in (True, False) if pair % 2 == 0 else (False, True):
                        times[host], share = run(command, options if host else ["--no-host"], folder)
                        if host:
                            shares.append(share)
                    ratios.append(times[True] / times[False])
                worst = "" if max(shares) <= BUDGET else "  OVER BUDGET"
                print(f"{name:16} {what:26} {100 * statistics.median(shares):.2f} % of one core "
                      f"(most {100 * max(shares):.2f}, budget {100 * BUDGET:g}), time ratio "
                      f"{statistics.median(ratios):.4f} ({min(ratios):.4f} to {max(ratios):.4f}){worst}", flush=True)


if __name__ == "__main__":
    main()
