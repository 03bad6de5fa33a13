#!/usr/bin/env python3
"""Unmixed samples beside the range method: `perf/counters_unmix.py BIN FOLDER [--period 100us] > table.md`.

perf/workloads/mixed.py twice: with counters of its ranges, and sampled. Per class of kernels: DRAM bytes, tensor cycles
and so on per second of the class's own kernel time, by both; the difference and the error that unmixing states."""
import argparse
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
parser = argparse.ArgumentParser()
parser.add_argument("bin")
parser.add_argument("folder")
parser.add_argument("--period", default="100us")
parser.add_argument("--seconds", default="6")
options = parser.parse_args()
llmprof = str(pathlib.Path(options.bin).resolve() / "llmprof")
folder = pathlib.Path(options.folder).resolve()
folder.mkdir(parents=True, exist_ok=True)
PROGRAM = ["env", "-u", "LD_LIBRARY_PATH", "python3", str(HERE / "workloads/mixed.py"), "--seconds", options.seconds]
COUNTERS = "dram_read_bytes,dram_write_bytes,tensor_active_pct"


def run(name, *flags):
    done = subprocess.run([llmprof, "record", "-q", "-f", "--no-peaks", "-o", str(folder / name), "--counters", COUNTERS, *flags, "--", *PROGRAM],
                          capture_output=True, text=True, timeout=200)
    print(f"{name}: {done.returncode} {done.stderr.strip()[-400:]}", file=sys.stderr)
    report = subprocess.run([llmprof, "report", str(folder / name), "--json"], capture_output=True, text=True, timeout=200)
    return json.loads(report.stdout)


def query(name, sql):
    done = subprocess.run([llmprof, "query", str(folder / name), sql, "--json"], capture_output=True, text=True, timeout=120)
    return json.loads(done.stdout)["rows"] if done.returncode == 0 else sys.exit(done.stderr)


run("ranges", "--counters-method", "range", "--counters-range", "class_*", "--counters-budget", "20")
sampled = run("sampled", "--counters-method", "sampled", "--counters-period", options.period)["hardware_counters"]

# The kernel of each class and its values per second of kernel time, from ranges: bytes of a window over the kernels' time in it.
# The first window of a class contains first uses: left out.
rows = query("ranges", """
  WITH window_kernel AS (
    SELECT w.id, w.name AS class, w.begin_ns, k.name AS kernel, sum(k.end_ns - k.begin_ns) AS kernel_ns
    FROM counter_window AS w JOIN kernel AS k ON k.begin_ns >= w.begin_ns AND k.end_ns <= w.end_ns
    WHERE w.scope = 'range' GROUP BY ALL),
  kernels AS (SELECT id, class, begin_ns, max_by(kernel, kernel_ns) AS kernel, sum(kernel_ns) AS kernel_ns, row_number() OVER (PARTITION BY class ORDER BY begin_ns) AS number
    FROM window_kernel GROUP BY id, class, begin_ns)
  SELECT class, kernel, metric, sum(value) / sum(kernel_ns) * 1e9 AS per_s, count(*)::BIGINT AS windows, stddev_samp(value / kernel_ns) / avg(value / kernel_ns) AS spread
  FROM kernels JOIN counter AS c ON c.scope = 'range' AND c.scope_id = kernels.id WHERE number > 1 AND metric LIKE 'dram__bytes%' GROUP BY ALL ORDER BY class, metric""")
unmixed = {entry["name"]: entry for entry in sampled["unmixed"]}
print("# Unmixed samples beside ranges\n")
print(f"Period {options.period}; {sampled['samples']} samples; clock shift {sampled.get('clock_shift_ns')} ns, fit {sampled.get('clock_fit')}.\n")
print("| class | kernel | quantity | ranges, per s | windows | spread | unmixed, per s | stated error | difference | inside the error |\n|---|---|---|---|---|---|---|---|---|---|")
names = {"dram__bytes_read.sum": "dram_read_bytes", "dram__bytes_write.sum": "dram_write_bytes"}
worst = []
for row in rows:
    entry = unmixed.get(row["kernel"])
    value = next((v for v in entry["values"] if v["counter"] == names.get(row["metric"])), None) if entry else None
    if value is None:
        print(f"| {row['class']} | {row['kernel'][:50]} | {row['metric']} | {row['per_s']:.4g} | {row['windows']} | {row['spread'] or 0:.3f} | - | | | |")
        continue
    difference = value["value"] / row["per_s"] - 1 if row["per_s"] else float("inf")
    error = value["error"] or 0
    if row["per_s"] > 1e10:
        worst.append((abs(difference), row["class"]))
    print(f"| {row['class']} | {row['kernel'][:50]} | {row['metric']} | {row['per_s']:.4g} | {row['windows']} | {row['spread'] or 0:.3f} | {value['value']:.4g} | "
          f"{100 * error:.1f} % | {100 * difference:+.1f} % | {'yes' if abs(difference) <= error else 'no'} |")
print(f"\nLargest difference among rates above 10 GB/s: {max(worst) if worst else 'none compared'}.")
