#!/usr/bin/env python3
"""torch.matmul over shapes of LLMs: the time of its kernels by CUPTI, cold cache, random data.

  bench_gemm_peer.py --shapes                  prints the 60 shapes as op,type,m,n,k
  bench_gemm_peer.py > torch.csv               times them, prints op,type,m,n,k,us (the median)
  bench_gemm_peer.py --compare ours.csv torch.csv
                                               our time over theirs: median, 90th percentile, the worst shapes
"""
import csv
import statistics
import sys
import time

# Rows n and columns k of weights: Llama 3 8B (qkv, output, gate and up, down), 70B (qkv, output, down), and smaller
# ones as of sharded and small models.
WEIGHTS = [(6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336), (10240, 8192), (8192, 8192), (8192, 28672),
           (2048, 2048), (5120, 5120), (1536, 7168)]
ROWS = [1, 16, 64, 256, 2048, 8192]
CALLS = 24             # timed, of each shape
WARM_UP_SECONDS = 0.1  # of the same calls before them: a GPU that just idled runs faster than it can for long


def shapes():
    return [(m, n, k) for n, k in WEIGHTS for m in ROWS]


def device_ns_by_call(profile, torch):
    """What each call ran on the device, cuBLAS's own memsets with it, in ns. The flush's write begins a call."""
    events = [e for e in profile.profiler.kineto_results.events() if e.device_type() == torch.autograd.DeviceType.CUDA]
    calls = []
    for event in sorted(events, key=lambda e: e.start_ns()):
        if "FillFunctor" in event.name():
            calls.append(0)
        elif calls and "at::native" not in event.name():  # of the flush, too: its read
            calls[-1] += event.duration_ns()
    return calls


def time_shape(torch, flush, m, n, k):
    from torch.profiler import ProfilerActivity, profile

    x = torch.randn(m, k, dtype=torch.bfloat16, device="cuda")
    w = torch.randn(n, k, dtype=torch.bfloat16, device="cuda")
    y = torch.empty(m, n, dtype=torch.bfloat16, device="cuda")

    def call():
        flush.fill_(1)
        flush.max()  # read as well, or what was written would leave the cache while the product runs
        torch.matmul(x, w.t(), out=y)

    call()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA], acc_events=True) as p:
        end = time.monotonic() + WARM_UP_SECONDS
        while time.monotonic() < end:
            call()
            torch.cuda.synchronize()
        for _ in range(CALLS):
            call()
        torch.cuda.synchronize()
    calls = device_ns_by_call(p, torch)[-CALLS:]
    if len(calls) != CALLS or not all(calls):
        sys.exit(f"m={m} n={n} k={k}: {CALLS} calls were made, {len(calls)} were seen")
    return statistics.median(calls) / 1000


def measure():
    import torch

    flush = torch.empty(2 * torch.cuda.get_device_properties(0).L2_cache_size // 4, dtype=torch.int32, device="cuda")
    print("op,type,m,n,k,us")
    for m, n, k in shapes():
        print(f"gemm,bfloat16,{m},{n},{k},{time_shape(torch, flush, m, n, k):.3f}", flush=True)


def read(path):
    with open(path) as file:
        rows = csv.DictReader(line for line in file if not line.startswith("#"))
        return {(r["op"], r["type"], int(r["m"]), int(r["n"]), int(r["k"])): float(r["us"]) for r in rows}


def compare(ours_path, theirs_path):
    ours, theirs = read(ours_path), read(theirs_path)
    both = sorted(set(ours) & set(theirs))
    if not both:
        sys.exit("the two have no shape in common")
    ratios = sorted((ours[key] / theirs[key], key) for key in both)
    values = [ratio for ratio, _ in ratios]
    p90 = values[min(len(values) - 1, round(0.9 * (len(values) - 1)))]
    print(f"{len(values)} shapes: our time over torch.matmul's, median {statistics.median(values):.3f}, "
          f"p90 {p90:.3f}, least {values[0]:.3f}, most {values[-1]:.3f}")
    for ratio, key in ratios[-6:]:
        print(f"  {ratio:.3f}  {key[1]} m={key[2]} n={key[3]} k={key[4]}: {ours[key]:.2f} us, torch {theirs[key]:.2f} us")
    return 0 if statistics.median(values) <= 1.01 and p90 <= 1.05 else 1


def main():
    if sys.argv[1:] == ["--shapes"]:
        print("op,type,m,n,k")
        for m, n, k in shapes():
            print(f"gemm,bfloat16,{m},{n},{k}")
    elif len(sys.argv) == 4 and sys.argv[1] == "--compare":
        sys.exit(compare(sys.argv[2], sys.argv[3]))
    elif len(sys.argv) == 1:
        measure()
    else:
        sys.exit(__doc__)


main()
