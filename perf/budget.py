#!/usr/bin/env python3
"""budget.py BUILD [--update] [--kernels N]: CPU time of `llmprof report` against the committed figures of budgets.json.

A figure is user + system time, as a ratio to a loop of this script (deflate and a sort), so that slow and fast machines
agree; of several interleaved rounds the best counts, so that a busy machine does no harm. A case that is over its budget
is measured again before it fails. --update writes the figures measured now; --kernels measures a run of another size
against the same figures: with twice the kernels the check must fail."""
import argparse
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time
import zlib

FIGURES = pathlib.Path(__file__).with_name("budgets.json")
LOSS = 1.25  # times the committed ratio
TICK_S = 0.005  # more than that: the time of what takes milliseconds is not known better
ROUNDS, MORE_ROUNDS = 3, 4


def calibration(block, numbers):
    begin = time.process_time()
    zlib.compress(block, 6)
    sorted(numbers)
    return time.process_time() - begin


def cpu_seconds(command):
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{' '.join(command)} failed: {errors.decode()}")
    return usage.ru_utime + usage.ru_stime


class Budget:
    def __init__(self, build, folder, kernels):
        self.llmprof, self.folder = str(build / "bin/llmprof"), folder
        os.environ["LLMPROF_CACHE_DIR"] = str(folder / "cache")
        for name, count in (("large", kernels), ("small", 2000)):
            subprocess.run([str(build / "perf/synthetic_run"), str(folder / f"{name}.llmprof"), str(count)], check=True,
                           stdout=subprocess.DEVNULL)
        generator = random.Random(1)
        self.block = bytes(generator.choices(b"llmprof ", k=2_000_000))
        self.numbers = [generator.random() for _ in range(300_000)]
        self.best = {}

    def take(self, name, seconds):
        self.best[name] = min(seconds, self.best.get(name, seconds))

    def round(self):
        self.take("calibration", calibration(self.block, self.numbers))
        for run, label in (("large", "1 M kernels"), ("small", "2000 kernels")):
            folder = str(self.folder / f"{run}.llmprof")
            shutil.rmtree(folder + "/derived", ignore_errors=True)
            self.take(f"first report, {label}", cpu_seconds([self.llmprof, "report", folder]))
            self.take(f"second report, {label}", cpu_seconds([self.llmprof, "report", folder]))
        self.take("query, 2000 kernels", cpu_seconds([self.llmprof, "query", folder, "SELECT count(*) FROM kernel"]))
        self.take("--help", cpu_seconds([self.llmprof, "--help"]))

    def ratios(self):
        return {name: seconds / self.best["calibration"] for name, seconds in self.best.items() if name != "calibration"}

    def over(self, figures):
        allowed = {name: LOSS * figure * self.best["calibration"] + TICK_S for name, figure in figures.items()}
        return [name for name in allowed if self.best[name] > allowed[name]]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--kernels", type=int, default=1_000_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        budget = Budget(arguments.build.resolve(), pathlib.Path(folder), arguments.kernels)
        for _ in range(ROUNDS):
            budget.round()
        if arguments.update:
            figures = {name: round(ratio, 3) for name, ratio in budget.ratios().items()}
            FIGURES.write_text(json.dumps(figures, indent=2) + "\n")
            return 0
        figures = json.loads(FIGURES.read_text())
        for _ in range(MORE_ROUNDS):
            if budget.over(figures):
                budget.round()
        over = budget.over(figures)
        for name, ratio in budget.ratios().items():
            print(f"{name}: {budget.best[name]:.3f} s of CPU, {ratio:.3f} of the loop's {budget.best['calibration']:.3f} s, "
                  f"committed {figures[name]:.3f}{', OVER by more than 25 %' if name in over else ''}")
        return 1 if over else 0


sys.exit(main())
