#!/usr/bin/env python3
"""llmprof bench gemm against torch.matmul over 60 shapes of LLMs: cold cache, random data, the time of kernels by CUPTI.

  bench_gemm_peer.py                    torch's times alone: op,type,m,n,k,us (the median)
  bench_gemm_peer.py build/bin/llmprof  both, and our time over theirs: median, 90th percentile, the worst shapes.
                                        Fails if the median is over 1.01 or the 90th percentile over 1.05.
"""
import csv
import os
import statistics
import subprocess
import sys
import tempfile
import time

from torch_times import device_times

# Rows n and columns k of weights: Llama 3 8B (qkv, output, gate and up, down), 70B (qkv, output, down), and smaller
# ones as of sharded and small models.
WEIGHTS = [(6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336), (10240, 8192), (8192, 8192), (8192, 28672),
           (2048, 2048), (5120, 5120), (1536, 7168)]
ROWS = [1, 16, 64, 256, 2048, 8192]
CALLS = 24             # timed, of each shape
WARM_UP_SECONDS = 0.1  # of the same calls before them: a GPU that just idled runs faster than it can for long


def shapes():
    return [(m, n, k) for n, k in WEIGHTS for m in ROWS]


def time_shape(torch, flush, m, n, k):
    x = torch.randn(m, k, dtype=torch.bfloat16, device="cuda")
    w = torch.randn(n, k, dtype=torch.bfloat16, device="cuda")
    y = torch.empty(m, n, dtype=torch.bfloat16, device="cuda")

    def call():
        flush.fill_(1)
        flush.max()  # read as well, or what was written would leave the cache while the product runs
        torch.matmul(x, w.t(), out=y)

    def run():
        end = time.monotonic() + WARM_UP_SECONDS
        while time.monotonic() < end:
            call()
            torch.cuda.synchronize()
        for _ in range(CALLS):
            call()

    call()
    torch.cuda.synchronize()
    # "at::native" is the flush's read; cuBLAS's own memsets belong to a call.
    calls = [ns for ns, _ in device_times(torch, run, "FillFunctor", "at::native")][-CALLS:]
    if len(calls) != CALLS or not all(calls):
        sys.exit(f"m={m} n={n} k={k}: {CALLS} calls were made, {len(calls)} were seen")
    return statistics.median(calls) / 1000


def torch_times():
    import torch

    flush = torch.empty(2 * torch.cuda.get_device_properties(0).L2_cache_size // 4, dtype=torch.int32, device="cuda")
    times = {}
    print("op,type,m,n,k,us")
    for m, n, k in shapes():
        times[m, n, k] = time_shape(torch, flush, m, n, k)
        print(f"gemm,bfloat16,{m},{n},{k},{times[m, n, k]:.3f}", flush=True)
    return times


def our_times(llmprof, folder):
    times = {}
    for n, k in WEIGHTS:
        table = os.path.join(folder, "points.csv")
        subprocess.run([llmprof, "bench", "gemm", "--device", "cuda", "--dtype", "bf16", "--m", ",".join(map(str, ROWS)),
                        "--n", str(n), "--k", str(k), "--no-graph", "--no-peaks", "--csv", table, "-f", "-o",
                        os.path.join(folder, "points")], check=True, stdout=subprocess.DEVNULL)
        with open(table) as file:
            for row in csv.DictReader(file):
                if row["status"] != "measured":
                    sys.exit(f"m={row['m']} n={n} k={k}: {row['status']}: {row['reason']}")
                times[int(row["m"]), n, k] = float(row["median_ns"]) / 1000
    return times


def compare(ours, theirs):
    ratios = sorted((ours[shape] / theirs[shape], shape) for shape in shapes())
    values = [ratio for ratio, _ in ratios]
    median, p90 = statistics.median(values), values[round(0.9 * (len(values) - 1))]
    print(f"{len(values)} shapes: our time over torch.matmul's: median {median:.3f}, p90 {p90:.3f}, "
          f"least {values[0]:.3f}, most {values[-1]:.3f}")
    for ratio, (m, n, k) in ratios[-6:]:
        print(f"  {ratio:.3f}  m={m} n={n} k={k}: {ours[m, n, k]:.2f} us, torch {theirs[m, n, k]:.2f} us")
    return 0 if median <= 1.01 and p90 <= 1.05 else 1


def main():
    if len(sys.argv) > 2 or sys.argv[1:2] in (["-h"], ["--help"]):
        sys.exit(__doc__)
    if len(sys.argv) == 1:
        torch_times()
        return
    with tempfile.TemporaryDirectory() as folder:
        ours = our_times(sys.argv[1], folder)
    sys.exit(compare(ours, torch_times()))


main()
