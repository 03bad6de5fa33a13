#!/usr/bin/env python3
"""Six classes of kernels of 0.1 to 1 ms in random order, each call a range named class_<what>: what unmixing samples is
held against. `--seconds` says how long."""
import argparse
import random
import time

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--seconds", type=float, default=6)
options = parser.parse_args()
device = torch.device("cuda:0")
torch.manual_seed(0)
random.seed(0)


def bf16(*shape):
    return torch.randn(*shape, device=device, dtype=torch.bfloat16)


a, b, c = bf16(4096, 4096), bf16(4096, 4096), bf16(4096, 4096)
thin, wide, tall = bf16(16, 8192), bf16(8192, 32768), bf16(16, 32768)
u, v, w = (torch.randn(1 << 27, device=device) for _ in range(3))
rows, soft = torch.randn(16384, 8192, device=device), torch.empty(16384, 8192, device=device)
small, sine = torch.randn(1 << 22, device=device), torch.empty(1 << 22, device=device)
half, moved = bf16(8192, 16384), bf16(16384, 8192)
CLASSES = {
    "gemm": lambda: torch.mm(a, b, out=c),
    "thin": lambda: torch.mm(thin, wide, out=tall),
    "triad": lambda: torch.add(u, v, alpha=3.0, out=w),
    "softmax": lambda: torch.softmax(rows, -1, out=soft),
    "sine": lambda: torch.erfinv(small, out=sine),
    "transpose": lambda: moved.copy_(half.t()),
}
with torch.inference_mode():
    for call in CLASSES.values():
        call(), call()
    torch.cuda.synchronize()
    end = time.monotonic() + options.seconds
    while time.monotonic() < end:
        for _ in range(64):
            name = random.choice(list(CLASSES))
            torch.cuda.nvtx.range_push(f"class_{name}")
            CLASSES[name]()
            torch.cuda.nvtx.range_pop()
        torch.cuda.synchronize()
