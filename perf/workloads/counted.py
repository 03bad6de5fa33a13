#!/usr/bin/env python3
"""Kernels whose counters are compared with another tool's: decode steps of a Llama-shaped model (eager), a matrix
product of 4096^3 in bfloat16, and a triad over 2^27 floats. Everything between cudaProfilerStart and cudaProfilerStop.
Each kernel comes often, so that sets of several passes find enough launches of it."""
import argparse
import json
import time

import torch
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=8)
parser.add_argument("--layers", type=int, default=4)
options = parser.parse_args()
HIDDEN, HEADS, KV_HEADS, FFN, VOCABULARY, LENGTH = 2048, 32, 8, 8192, 128256, 640
HEAD = HIDDEN // HEADS
device = torch.device("cuda:0")
torch.manual_seed(0)


def weight(*shape):
    return torch.randn(*shape, device=device, dtype=torch.bfloat16) * 0.02


embedding = weight(VOCABULARY, HIDDEN)
layers = [(weight((HEADS + 2 * KV_HEADS) * HEAD, HIDDEN), weight(HIDDEN, HIDDEN), weight(2 * FFN, HIDDEN), weight(HIDDEN, FFN),
           weight(1, KV_HEADS, LENGTH, HEAD), weight(1, KV_HEADS, LENGTH, HEAD)) for _ in range(options.layers)]
norm = torch.ones(HIDDEN, device=device, dtype=torch.bfloat16)
token = torch.zeros(1, 1, device=device, dtype=torch.long)


def step():
    x = F.embedding(token, embedding)
    for qkv, out, gate_up, down, keys, values in layers:
        q, k, v = F.linear(F.rms_norm(x, (HIDDEN,), norm, 1e-5), qkv).view(1, 1, -1, HEAD).transpose(1, 2).split((HEADS, KV_HEADS, KV_HEADS), 1)
        keys[:, :, 512:513].copy_(k)
        values[:, :, 512:513].copy_(v)
        attended = F.scaled_dot_product_attention(q.reshape(1, KV_HEADS, HEADS // KV_HEADS, HEAD), keys, values).reshape(1, 1, -1)
        x = x + F.linear(attended, out)
        gate, up = F.linear(F.rms_norm(x, (HIDDEN,), norm, 1e-5), gate_up).chunk(2, -1)
        x = x + F.linear(F.silu(gate) * up, down)
    return F.linear(F.rms_norm(x, (HIDDEN,), norm, 1e-5), embedding).argmax(-1)


with torch.inference_mode():
    a, b = weight(4096, 4096), weight(4096, 4096)
    u, v = torch.randn(1 << 27, device=device), torch.randn(1 << 27, device=device)
    c, w = torch.empty_like(a), torch.empty_like(u)
    for _ in range(3):
        step(), torch.mm(a, b, out=c), torch.add(u, v, alpha=3.0, out=w)
    torch.cuda.synchronize()
    begin = time.perf_counter()
    torch.cuda.profiler.start()
    for _ in range(options.steps):
        torch.cuda.nvtx.range_push("decode_step")
        step()
        torch.cuda.synchronize()
        torch.cuda.nvtx.range_pop()
        torch.mm(a, b, out=c)
        torch.add(u, v, alpha=3.0, out=w)
        torch.cuda.synchronize()
    torch.cuda.profiler.stop()
    print(json.dumps({"seconds": time.perf_counter() - begin}))
