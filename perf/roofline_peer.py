#!/usr/bin/env python3
"""Peaks of `llmprof roofline` beside what PyTorch reaches on the same GPU in the same minute.

usage: roofline_peer.py LLMPROF [--full]   (needs a GPU and PyTorch)

Both are measured the same way, in batches of about 10 ms between CUDA events, medians over batches: every shape for a
moment, then the best one with pauses of 30 ms (the peak), then back to back (sustained). PyTorch runs before and after
llmprof, and the better of its two is compared.
"""
import json
import os
import subprocess
import sys
import tempfile
import time

import torch

SHAPES = [(2048, 2048, 13312), (8192, 8192, 8192), (4096, 4096, 4096), (3072, 5632, 8192), (4096, 4096, 8192),
          (8192, 8448, 4096), (1536, 2816, 16384), (8192, 4096, 8192)]
FP8_SHAPES = [(8192, 8192, 8192), (1280, 4096, 12032), (4096, 4096, 16384), (2048, 2048, 13312)]


def batch_seconds(call, calls):
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(calls):
        call()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / 1e3 / calls


def median(call, seconds, pause, least=5):
    """Median seconds of one call, in batches of about 10 ms."""
    call()
    torch.cuda.synchronize()
    calls = max(1, int(0.01 / batch_seconds(call, 1)))
    batches, begin = [], time.monotonic()
    while len(batches) < least or time.monotonic() - begin < seconds:
        time.sleep(pause)
        batches.append(batch_seconds(call, calls))
    return sorted(batches)[len(batches) // 2]


def best_product(shapes, make):
    tried = []
    for m, n, k in shapes:
        call = make(m, n, k)
        tried.append((2 * m * n * k / median(call, 0, 0.03, 3), (m, n, k), call))
    tried.sort(key=lambda t: -t[0])
    peak, shape, call = 0, None, None
    for _, (m, n, k), each in tried[:3]:
        reached = 2 * m * n * k / median(each, 0.4, 0.03)
        if reached > peak:
            peak, shape, call = reached, (m, n, k), each
    m, n, k = shape
    return peak, 2 * m * n * k / median(call, 0.5, 0), shape


def bf16(m, n, k):
    a = torch.randn(m, k, device="cuda", dtype=torch.bfloat16)
    b = torch.randn(n, k, device="cuda", dtype=torch.bfloat16)
    c = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
    return lambda: torch.matmul(a, b.t(), out=c)


def fp8(m, n, k):
    a = torch.randn(m, k, device="cuda").to(torch.float8_e4m3fn)
    b = torch.randn(n, k, device="cuda").to(torch.float8_e4m3fn)
    one = torch.ones((), device="cuda")
    return lambda: torch._scaled_mm(a, b.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16)


def copy_bandwidth():
    a = torch.randn(1 << 30, device="cuda")
    b = torch.empty_like(a)
    return 2 * a.numel() * 4 / median(lambda: b.copy_(a), 0.3, 0)


def torch_peaks():
    peaks = {"copy": (copy_bandwidth(), "")}
    for name, shapes, make in (("bfloat16", SHAPES, bf16), ("float8", FP8_SHAPES, fp8)):
        peak, steady, shape = best_product(shapes, make)
        peaks[name], peaks[name + ", sustained"] = (peak, shape), (steady, shape)
    return peaks


def llmprof_peaks(program, words):
    environment = dict(os.environ, LLMPROF_CACHE_DIR=tempfile.mkdtemp())
    begin = time.monotonic()
    out = subprocess.run([program, "roofline", "--device", "cuda:0", "--json", *words], env=environment,
                         capture_output=True, text=True)
    wall = time.monotonic() - begin
    if out.returncode != 0:
        sys.exit(out.stderr)
    return json.loads(out.stdout)["devices"][0], wall


def show(device, wall, words):
    print(f"llmprof roofline {' '.join(words)}: {wall:.1f} s")
    for peak in device["peaks"]:
        value = "-" if peak["value"] is None else f"{peak['value']:.4g} {peak['unit']}"
        share = "" if peak["share_of_spec"] is None else f"{peak['share_of_spec']:.1%}"
        print(f"  {peak['type']:26} {value:18} {share:7} {peak['method'] or peak['why']}")
    for note in device["notes"]:
        print("  note:", note)


def main():
    program, words = sys.argv[1], [] if "--full" in sys.argv else ["--quick"]
    before = torch_peaks()
    torch.cuda.empty_cache()
    device, wall = llmprof_peaks(program, words)
    after = torch_peaks()
    show(device, wall, words)
    ours = {peak["type"]: peak["value"] for peak in device["peaks"]}
    for name in before:
        if ours.get(name) is None:
            print(f"{name:19} ours -")
            continue
        theirs = max(before[name][0], after[name][0])
        print(f"{name:19} ours {ours[name]:.4g}  torch {before[name][0]:.4g} {before[name][1]} before, "
              f"{after[name][0]:.4g} after: {ours[name] / theirs:.3f}x")


if __name__ == "__main__":
    main()
