#!/usr/bin/env python3
"""A program that makes it hard to count: graphs captured inside ranges that are measured, a second thread with ranges of
its own, ranges inside ranges, an end in mid-range. Prints a checksum that must not depend on who watches.
counters_rough.py [exit|_exit|none]"""
import os
import sys
import threading

import torch

how = sys.argv[1] if len(sys.argv) > 1 else "none"
push, pop = torch.cuda.nvtx.range_push, torch.cuda.nvtx.range_pop
torch.manual_seed(0)
x = torch.randn(1024, 1024, device="cuda")
total = torch.zeros((), device="cuda", dtype=torch.float64)
side_total = torch.zeros((), device="cuda", dtype=torch.float64)


def side():
    stream = torch.cuda.Stream()
    y = torch.randn(512, 512, device="cuda", generator=torch.Generator("cuda").manual_seed(1))
    with torch.cuda.stream(stream):
        for _ in range(200):
            push("decode_step")
            z = y @ y
            side_total.add_(z.sum().double() * 1e-6)
            pop()
    stream.synchronize()


graphs = []
for size in range(1, 4):  # captures inside ranges that match
    push("prefill")
    warm = x[: 256 * size] @ x
    torch.cuda.synchronize()
    out = torch.empty_like(warm)
    graph = torch.cuda.CUDAGraph()
    push("decode_step")
    with torch.cuda.graph(graph):
        torch.mm(x[: 256 * size], x, out=out)
        out.mul_(0.5)
    pop()
    graphs.append((graph, out))
    pop()
thread = threading.Thread(target=side)
thread.start()
for step in range(300):
    push("decode")
    push("decode_step")
    graph, out = graphs[step % 3]
    graph.replay()
    total.add_(out.sum().double())
    if step % 10 == 0:
        torch.cuda.synchronize()
    pop()
    pop()
thread.join()
torch.cuda.synchronize()
print(f"checksum {total.item():.9e} {side_total.item():.9e}", flush=True)
push("decode_step")
graphs[0][0].replay()
if how == "exit":
    sys.exit(3)
if how == "_exit":
    os._exit(4)
pop()
