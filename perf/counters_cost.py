#!/usr/bin/env python3
"""What reading hardware counters costs a decode loop: `perf/counters_cost.py BIN [options] > table.md`.

perf/workloads/decode.py --impl mini --graph, alone and under `llmprof record` with and without counters, one after the
other, round by round. A block is a prefill and so many steps; its time per step is the mean, so that measured steps
count. Blocks in which the one-time set-up falls (the first two) are stated apart. Two ratios are given: against the same
round's runs without counters, and inside a run the mean against the median of its steps' times, which few measured
steps do not move."""
import argparse
import json
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("bin", help="folder of llmprof")
parser.add_argument("--rounds", type=int, default=3)
parser.add_argument("--repeat", type=int, default=25, help="blocks of a run")
parser.add_argument("--steps", type=int, default=120, help="of a block")
parser.add_argument("--keep", default="", help="a folder to keep the runs in")
parser.add_argument("--only", default="", help="these variants, beside none")
options = parser.parse_args()
llmprof = str(pathlib.Path(options.bin).resolve() / "llmprof")
scratch = pathlib.Path(options.keep or tempfile.mkdtemp(prefix="llmprof-counters-")).resolve()
scratch.mkdir(parents=True, exist_ok=True)
SET_UP_BLOCKS = 2

VARIANTS = {
    "none": None,
    "record": [],
    "light": ["--counters", "light"],
    "full": ["--counters", "full"],
    "sampled at 1 ms": ["--counters", "light", "--counters-method", "sampled", "--counters-period", "1ms"],
    "stalls": ["--stalls"],
}
if options.only:
    VARIANTS = {name: flags for name, flags in VARIANTS.items() if name == "none" or name in options.only.split(",")}


def query(run, sql):
    done = subprocess.run([llmprof, "query", run, sql, "--json"], capture_output=True, text=True, timeout=120)
    return json.loads(done.stdout)["rows"] if done.returncode == 0 else []


def measure(name, flags, number):
    program = ["env", "-u", "LD_LIBRARY_PATH", "python3", str(HERE / "workloads/decode.py"), "--impl", "mini", "--graph",
               "--steps", str(options.steps), "--repeat", str(options.repeat)]
    run = str(scratch / f"{name.replace(' ', '_')}_{number}")
    words = program if flags is None else [llmprof, "record", "-q", "-f", "--no-peaks", "-o", run, *flags, "--", *program]
    begin = time.monotonic()
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    total_s = time.monotonic() - begin
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0 or not lines:
        print(f"{name}: {done.returncode} {done.stderr.strip()[-300:]}", file=sys.stderr)
        return None
    answer = json.loads(lines[-1])
    blocks = [(p["end_ns"] - p["begin_ns"]) / p["steps"] / 1e6 for p in answer["phases"]]
    steady = blocks[SET_UP_BLOCKS:]
    result = {"mean_ms": statistics.mean(steady), "median_ms": answer["ms_per_token"], "total_s": total_s,
              "first_s": sum(blocks[:SET_UP_BLOCKS]) * options.steps / 1e3}
    if flags:
        result["windows"] = query(run, "SELECT scope, count(*)::BIGINT AS n, sum(cost_ns)::BIGINT AS cost_ns, max(passes)::BIGINT AS passes "
                                       "FROM counter_window GROUP BY scope ORDER BY scope")
        result["losses"] = query(run, "SELECT name, sum(count)::BIGINT AS n FROM loss WHERE name LIKE 'counter%' GROUP BY name ORDER BY name")
    return result


results = {name: [] for name in VARIANTS}
for number in range(options.rounds):
    order = list(VARIANTS.items())
    for name, flags in order if number % 2 == 0 else reversed(order):
        result = measure(name, flags, number)
        if result:
            results[name].append(result)
            print(f"round {number + 1} {name}: {json.dumps(result)}", file=sys.stderr, flush=True)

gpu = subprocess.run("nvidia-smi --query-gpu=name,driver_version --format=csv,noheader", shell=True, capture_output=True, text=True)
print(f"# What reading counters costs\n\n{gpu.stdout.strip()}; {options.rounds} rounds, {options.repeat} blocks of {options.steps} steps "
      f"(the first {SET_UP_BLOCKS} apart); means over steady blocks, medians over rounds.\n")
print("| variant | ms/step, mean | over none | over record | mean / median of its own steps | first blocks, s | windows | losses |\n|---|---|---|---|---|---|---|---|")
median = lambda values: statistics.median(values) if values else float("nan")
base, recorded = (median([r["mean_ms"] for r in results.get(n, [])]) for n in ("none", "record"))
for name, rows in results.items():
    if not rows:
        print(f"| {name} | failed | | | | | | |")
        continue
    mean = median([r["mean_ms"] for r in rows])
    inside = median([r["mean_ms"] / r["median_ms"] for r in rows])
    windows = "; ".join(f"{w['n']} {w['scope']}, {w['passes']} passes, {w['cost_ns'] / 1e6:.1f} ms" for w in rows[-1].get("windows", []))
    losses = ", ".join(f"{loss['name']} {loss['n']}" for loss in rows[-1].get("losses", []))
    print(f"| {name} | {mean:.4f} | {mean / base:.4f} | {mean / recorded:.4f} | {inside:.4f} | {median([r['first_s'] for r in rows]):.2f} | {windows} | {losses} |")
def sampler_cpu_s(seconds):
    """What the process that samples says it used, beside a program that sleeps so long."""
    run = str(scratch / f"sleep_{seconds}")
    subprocess.run([llmprof, "record", "-q", "-f", "--no-peaks", "--no-host", "-o", run, *VARIANTS["sampled at 1 ms"], "--", "sleep", str(seconds)],
                   capture_output=True, timeout=120)
    texts = [row["text"] for row in query(run, "SELECT text FROM note")]
    return next((float(re.search(r"([0-9.]+) s of CPU", text)[1]) for text in texts if "of CPU time" in text), float("nan"))


if "sampled at 1 ms" in VARIANTS:
    short, long = sampler_cpu_s(4), sampler_cpu_s(16)
    print(f"\nThe process that samples: {short:.2f} s of CPU time beside a sleep of 4 s, {long:.2f} s beside 16 s: "
          f"{100 * (long - short) / 12:.1f} % of one core, and {short - (long - short) / 3:.2f} s once.")
if not options.keep:
    shutil.rmtree(scratch, ignore_errors=True)
