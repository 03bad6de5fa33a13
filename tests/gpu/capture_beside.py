"""PyTorch with its own profiler in the middle: 100 products before, 100 while torch.profiler runs, 100 after, with pauses in
which another profiler can be seen to have left. Prints its books as JSON."""
import json
import time

import torch

a = torch.randn(256, 256, device="cuda")
b = torch.randn(256, 256, device="cuda")


def raw_ns():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)


def products(times):
    begin = raw_ns()
    for _ in range(times):
        torch.mm(a, b)
        time.sleep(0.01)
    torch.cuda.synchronize()
    return {"begin_ns": begin, "end_ns": raw_ns(), "products": times}


torch.mm(a, b)
torch.cuda.synchronize()
parts = [products(100)]
with torch.profiler.profile() as profiler:
    parts.append(products(100))
theirs = sum("CUDA" in str(event.device_type()) for event in profiler.profiler.kineto_results.events())
time.sleep(3)
parts.append(products(100))
print(json.dumps({"parts": parts, "torch_profiler_gpu_events": theirs}))
