#!/usr/bin/env python3
"""GPU capture under sanitizers: collector, fakes and program of one sanitized build, through faults and races. The program
ends as it should and the sanitizers have nothing to say.   sanitized.py BUILD_FOLDER"""
import os
import pathlib
import subprocess
import sys
import tempfile

import books

PLACE = pathlib.Path(sys.argv[1]).resolve() / "tests/fakes_sanitized"
NOW = {"LLMPROF_GRAPHS_AFTER_MS": "0"}
SMALL = {"LLMPROF_GPU_POOL_BYTES": str(1 << 20)}
# program, script of the fake CUPTI, settings, status
CASES = [
    ("run a 800", "", {}, 0), ("threads a 8 300", "", {}, 0), ("threads a 8 300", "lock=1", {}, 0),
    ("graph a 50 200", "", NOW, 0), ("graph a 50 100", "zero=7 drop=5", NOW, 0), ("graph_kinds a 20", "", {"LLMPROF_GRAPHS": "2"}, 0),
    ("threads a 4 3000", "incomplete=1", SMALL, 0), ("threads a 2 3000", "incomplete=1 version=26", SMALL, 0),
    ("twice a 100 12000 2000", "thief=60:40", {}, 0), ("exit_in_thread a", "", {}, 4), ("exit_in_callback a", "", {}, 5),
    ("exit_beside_launches a", "", {}, 0), ("exit_beside_launches a", "keep=1", {}, 0), ("fork_after_init a", "", {}, 0),
    ("unfinished a", "flush_ms=3000", {}, 0), ("profiler_windows a 40 1000", "", {"LLMPROF_PROFILER_API": "1"}, 0),
    ("graph_contexts a 5", "", NOW, 0), ("graph_made_beside a 60 30 8", "", NOW, 0), ("graph_made_beside a 60 30 8", "lock=1", NOW, 0),
    ("graph_made_beside a 400 0 4", "", NOW, 0), ("graph_captured_beside a 100", "", NOW, 0), ("graph_threads a 3 12", "", NOW, 0),
    ("run a 200", "", {"LLMPROF_GPU": "31", "LLMPROF_STACKS": "2"}, 0), ("run a 80", "held=nsys", {}, 0),
    *((f"threads a 3 200", script, {}, 0) for script in (
        "twice=1", "stray=1", "empty=1", "overlong=1", "late_ms=30", "grown=40 unheard=3 shuffle=1", "reversed=7 early=5",
        "fail=*@40:8", "fail=*@200:39", "fail=cuptiActivityFlushAll@1+:999")),
]


# The same with hardware counters: program, script, method and stalls of the plan, status
METRICS = "".join(f"metric GH100 a__{i}.sum\n" for i in range(12)) + "metric GH100 smsp__sass_op.sum\nmetric GH100 no_such__metric.sum\n"
LATE = {"VICTIM_PAUSE_MS": "700"}
COUNTED = [
    *((f"{way} a", script, f"method {method}\nstalls {stalls}", LATE if stalls != "off" else {}, status)
      for method, stalls in (("range", "off"), ("kernel", "off"), ("range", "with"), ("none", "only"))
      for script in ("", "slow_ms=2")
      for way, status in (("captures", 0), ("threads", 0), ("contexts", 0), ("destroy_in_range", 0), ("fork_in_range", 0),
                          ("exit_in_thread", 4), ("lose_in_range", 3), ("leave_in_range", 6))),
    *(("captures_beside a 3", script, f"method {method}\nstalls off", {}, 0) for method, script in (
        ("kernel", "launch_ms=5"), ("kernel", "launch_ms=5 lock=1"), ("kernel", "slow_ms=2"), ("range", "slow_ms=2"),
        ("range", "slow_ms=100 fail=cuptiRangeProfilerPushRange@2:8"))),
    *(("eager a 40 4", f"fail={name}@{n}:{error}", "method range\nstalls off", {}, 0) for n in ("1", "2+") for name, error in (
        ("cuptiRangeProfilerStart", 35), ("cuptiRangeProfilerStop", 999), ("cuptiRangeProfilerPushRange", 8),
        ("cuptiRangeProfilerPopRange", 7), ("cuptiRangeProfilerDecodeData", 1), ("cuptiProfilerHostEvaluateToGpuValues", 999),
        ("cuptiRangeProfilerSetConfig", 27), ("cuptiRangeProfilerCounterDataGetRangeInfo", 999))),
]


def problem(words, script, settings, status, program="victim", plan=None):
    with tempfile.TemporaryDirectory() as folder:
        logs, ledger = pathlib.Path(folder) / "logs", pathlib.Path(folder) / "ledger"
        logs.mkdir(), ledger.mkdir()
        inject = str(PLACE / "libinject.so")
        if plan is not None:
            (logs / "counters.plan").write_text(f"llmprof counters 1\n{plan}\nbudget_ppm 0\nrange *\nkernel *\n{METRICS}")
            settings = dict(settings, LLMPROF_COUNTERS="1")
        environment = dict(os.environ, FAULT_LEDGER=str(ledger), FAKE_CUPTI=script, FAKE_CUDA=str(PLACE / "libcuda.so.1"),
                           LLMPROF_CUPTI=str(PLACE / "libcupti.so.13"), CUDA_INJECTION64_PATH=inject,
                           NVTX_INJECTION64_PATH=inject, LLMPROF_CAPTURE_DIR=str(logs), ASAN_OPTIONS="detect_leaks=0",
                           UBSAN_OPTIONS="print_stacktrace=1", **settings)
        done = subprocess.run([str(PLACE / program), *words.split()], env=environment, capture_output=True, text=True, timeout=120)
        if done.returncode != status or "Sanitizer" in done.stderr or "runtime error" in done.stderr:
            return f"status {done.returncode}\n{done.stderr[-6000:]}"
        made = next(iter(books.of_folder(ledger).values()))
        if made.forbidden() or " calls failed in captures" in done.stdout.replace("\n0 calls failed", ""):
            return f"harmed: {done.stdout}, {made.forbidden()}"
        if not made.injected or not list(logs.glob("*.log")):
            return "it was not recorded"
        return None


for case in CASES:
    found = problem(*case)
    if found is not None:
        sys.exit(f"sanitize: GPU capture, {case}: {found}")
for words, script, plan, settings, status in COUNTED:
    found = problem(words, script, settings, status, "counter_victim", plan)
    if found is not None:
        sys.exit(f"sanitize: hardware counters, {words}, {script}, {plan}: {found}")
print(f"sanitize: GPU capture on fakes: {len(CASES) + len(COUNTED)} cases, nothing found")
