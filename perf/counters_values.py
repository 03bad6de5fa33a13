#!/usr/bin/env python3
"""Our counters beside Nsight Compute's, kernel by kernel: `perf/counters_values.py BIN FOLDER > table.md`.

perf/workloads/counted.py under `llmprof record --counters … --counters-method kernel` and under ncu with the same
metrics (--cache-control none --clock-control none), both between cudaProfilerStart and Stop. A row is a kernel with one
launch shape (template arguments apart); values are means over its measured launches. Prints the differences, how many are within the limits (2 %,
10 % for kernels under 5 us) and what each tool took. Fails if a tensor FLOP count is not that of the product."""
import argparse
import csv
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
parser = argparse.ArgumentParser()
parser.add_argument("bin")
parser.add_argument("folder")
parser.add_argument("--ncu", default="/opt/nvidia/nsight-compute/2025.3.1/ncu")
parser.add_argument("--launches", type=int, default=400, help="that ncu profiles, at most")
options = parser.parse_args()
llmprof = str(pathlib.Path(options.bin).resolve() / "llmprof")
folder = pathlib.Path(options.folder).resolve()
folder.mkdir(parents=True, exist_ok=True)
PROGRAM = ["env", "-u", "LD_LIBRARY_PATH", "python3", str(HERE / "workloads/counted.py")]

# what is compared -> our catalogue's name; metrics of the chip that either tool may have read
TENSOR = "sm__ops_path_tensor_src_bf16_dst_fp32.sum"
COMPARED = {
    "dram_read": ("dram_read_bytes", lambda m: m.get("dram__bytes_read.sum")),
    "dram_write": ("dram_write_bytes", lambda m: m.get("dram__bytes_write.sum")),
    "l2_hit": ("l2_hit_pct", lambda m: hit_rate(m)),
    "tensor_active": ("tensor_active_pct", lambda m: m.get("sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed")),
    "occupancy": ("achieved_occupancy_pct", lambda m: m.get("sm__warps_active.avg.pct_of_peak_sustained_active")),
    "tensor_flops": ("flops_bf16_tensor", lambda m: m.get(TENSOR)),
    "time": ("gpu_time_ns", lambda m: m.get("gpu__time_duration.sum")),
}


def hit_rate(m):
    if "lts__t_sector_hit_rate.pct" in m:
        return m["lts__t_sector_hit_rate.pct"]
    hit, miss = m.get("lts__t_sectors_lookup_hit.sum"), m.get("lts__t_sectors_lookup_miss.sum")
    return 100 * hit / (hit + miss) if hit is not None and miss is not None and hit + miss > 0 else None


def query(run, sql):
    done = subprocess.run([llmprof, "query", str(run), sql, "--json"], capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        sys.exit(f"{run}: {done.stderr}")
    return json.loads(done.stdout)["rows"]


def kernels(run):
    """(name, grid, block) -> metric -> (mean, launches), and the time of its launches."""
    table = {}
    rows = query(run, "SELECT k.name AS kernel, k.grid_x || 'x' || k.grid_y || 'x' || k.grid_z || '/' || k.block_x || 'x' || k.block_y || 'x' || "
                      "k.block_z AS shape, c.metric AS metric, avg(c.value) AS mean, count(*)::BIGINT AS n, min(k.begin_ns)::BIGINT AS first "
                      "FROM counter AS c JOIN kernel AS k ON k.id = c.scope_id WHERE c.scope = 'kernel' GROUP BY ALL ORDER BY first")
    for row in rows:
        table.setdefault((plain(row["kernel"]), row["shape"]), {}).setdefault(row["metric"], []).append((row["mean"], row["n"]))
    mean = lambda parts: (sum(v * n for v, n in parts) / sum(n for _, n in parts), sum(n for _, n in parts))
    return {key: {metric: mean(parts) for metric, parts in metrics.items()} for key, metrics in table.items()}


def plain(name):
    """The two tools spell namespaces and template arguments differently: what is before the arguments, without folders of names.
    Kernels that differ in their arguments only are one row if they are launched alike."""
    return name.removeprefix("void ").split("<unnamed>::")[-1].split("(anonymous namespace)::")[-1].split("<")[0].split("::")[-1]


ours, theirs = folder / "ours.llmprof", folder / "ncu.llmprof"
counters = ",".join(name for name, _ in COMPARED.values())
begin = time.monotonic()
done = subprocess.run([llmprof, "record", "-q", "-f", "--no-peaks", "--profiler-api", "-o", str(ours), "--counters", counters, "--counters-method", "kernel",
                       "--counters-kernels", "*", "--counters-budget", "0", "--", *PROGRAM, "--steps", "60"],
                      capture_output=True, text=True, timeout=400)
ours_s = time.monotonic() - begin
print(f"ours: {done.returncode} {done.stdout.strip()[-200:]} {done.stderr.strip()[-300:]}", file=sys.stderr)
metrics = ("gpu__time_duration.sum,dram__bytes_read.sum,dram__bytes_write.sum,lts__t_sector_hit_rate.pct,"
           f"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed,sm__warps_active.avg.pct_of_peak_sustained_active,{TENSOR}")
begin = time.monotonic()
text = folder / "ncu.csv"
with open(text, "w") as out:
    done = subprocess.run([options.ncu, "--profile-from-start", "off", "--cache-control", "none", "--clock-control", "none", "--csv", "--page", "raw",
                           "--print-units", "base", "--launch-count", str(options.launches), "--metrics", metrics, *PROGRAM, "--steps", "4"],
                          stdout=out, stderr=subprocess.PIPE, text=True, timeout=400)
ncu_s = time.monotonic() - begin
print(f"ncu: {done.returncode} {done.stderr.strip()[-300:]}", file=sys.stderr)
subprocess.run([llmprof, "import", "-f", "-o", str(theirs), str(text)], check=True, capture_output=True, timeout=120)

mine, reference = kernels(ours), kernels(theirs)
of = lambda table, key: {m: v for m, (v, _) in table[key].items()}
shared = [key for key in reference if key in mine]
print("# Counters beside Nsight Compute's\n")
print(f"`perf/counters_values.py`: {len(shared)} kernels with launch shape in both ({len(reference)} in ncu's, {len(mine)} in ours), "
      f"{sum(max(n for _, n in reference[k].values()) for k in shared)} launches by ncu, {sum(max(n for _, n in mine[k].values()) for k in shared)} measurements by llmprof. "
      f"Whole commands: llmprof {ours_s:.1f} s, ncu {ncu_s:.1f} s.\n")
names = list(COMPARED)
print("| kernel | time, us | " + " | ".join(f"{n}: ours / ncu" for n in names) + " |\n|---|---|" + "---|" * len(names))
inside, total, bad_flops = {n: 0 for n in names}, {n: 0 for n in names}, []
for key in shared:
    a, b = of(mine, key), of(reference, key)
    time_us = b["gpu__time_duration.sum"] / 1e3
    limit = 0.02 if time_us >= 5 else 0.10
    cells = []
    for name in names:
        x, y = COMPARED[name][1](a), COMPARED[name][1](b)
        if x is None or y is None:
            cells.append("-")
            continue
        # Below these a ratio says nothing: a few sectors, a thousandth of the peak.
        small = {"dram_read": 65536, "dram_write": 65536, "l2_hit": 0.5, "tensor_active": 0.1, "occupancy": 0.5, "tensor_flops": 1, "time": 1}[name]
        same = abs(x - y) <= max(limit * abs(y), small * (limit if name in ("tensor_flops", "time") else 1))
        total[name] += 1
        inside[name] += same
        cells.append(f"{x:.6g} / {y:.6g}" + ("" if same else " **"))
    if COMPARED["tensor_flops"][1](a) != COMPARED["tensor_flops"][1](b):
        bad_flops.append(key[0])
    print(f"| {key[0][:60]} {key[1]} | {time_us:.2f} | " + " | ".join(cells) + " |")
print("\n| quantity | within the limit | of |\n|---|---|---|")
for name in names:
    print(f"| {name} | {inside[name]} | {total[name]} |")
gemm = [of(mine, key).get(TENSOR) for key in mine if of(mine, key).get(TENSOR, 0) >= 2 * 4096**3 * 0.99]
print(f"\nTensor FLOPs of the product of 4096^3: {gemm} (2MNK = {2 * 4096**3}). Kernels whose tensor FLOPs differ from ncu's: {bad_flops or 'none'}.")
sys.exit(0 if gemm and all(g == 2 * 4096**3 for g in gemm) and not bad_flops else 1)
