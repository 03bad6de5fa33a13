#!/usr/bin/env python3
"""Row-wise and streaming operators on a GPU: `llmprof bench` and PyTorch's own kernels one after the other, both by CUPTI
with a cold cache and random data. Usage: bench_rows_peer.py build/bin/llmprof > rows.csv

A line per problem: median us of ours, bytes that the operator needs over that time in GB/s, median us of all kernels of
torch's call and their number, ours over torch's. Where torch has no kernel of its own it runs several (rope, gated and
fused operators). The last lines, on stderr, are those where ours is more than 10 % slower.
"""
import csv
import os
import subprocess
import sys
import tempfile

from torch_times import median_times

CALLS = 15
FLUSH_BYTES = 256 << 20
ROWS = ("rmsnorm", "layernorm", "layernorm_gelu", "residual_rmsnorm", "residual_add", "gelu", "gelu_tanh", "softmax")
SWEEPS = [  # operators, types, axes: one process each
    (ROWS, ("bfloat16",), {"seq": (1, 64, 2048, 16384), "hidden": (4096,)}),
    (ROWS, ("float16", "float32"), {"seq": (16384,), "hidden": (4096,)}),
    (("rmsnorm",), ("bfloat16",), {"seq": (262144,), "hidden": (128,)}),
    (("softmax",), ("bfloat16",), {"seq": (1, 64, 1024), "hidden": (128256,)}),
    (("silu_mul",), ("bfloat16", "float32"), {"seq": (1, 64, 8192), "intermediate": (14336,)}),
    (("rope",), ("bfloat16",), {"seq": (1, 8192), "heads": (32,), "kv_heads": (8,), "head_dim": (128,)}),
    (("kv_write",), ("bfloat16",),
     {"batch": (1,), "seq": (1, 8192), "kv_heads": (8,), "head_dim": (128,), "context": (8192,), "page": (16,)}),
    (("copy",), ("bfloat16",), {"values": (4096, 8 << 20, 128 << 20)}),
]


def ours(llmprof, ops, dtypes, axes):
    """Of each point: operator, type, sizes, and its line of the CSV."""
    with tempfile.TemporaryDirectory() as folder:
        flags = [flag for name, values in axes.items()
                 for flag in ("--" + name.replace("_", "-"), ",".join(str(value) for value in values))]
        command = [llmprof, "bench", *ops, "--device", "cuda", "--dtype", ",".join(dtypes), *flags, "--no-graph",
                   "--no-peaks", "--limit", "0.15", "--output", os.path.join(folder, "run"),
                   "--csv", os.path.join(folder, "points.csv")]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
        with open(os.path.join(folder, "points.csv")) as file:
            return [(row["op"], row["type"], {name: int(row[name]) for name in axes}, row) for row in csv.DictReader(file)]


def rope_call(torch, dtype, s):
    half, tokens = s["head_dim"] // 2, s["seq"]
    q, k = (torch.randn(tokens, s[name], s["head_dim"], device="cuda", dtype=dtype) for name in ("heads", "kv_heads"))
    angles = torch.rand(tokens, 1, half, device="cuda")
    cos, sin = (torch.cat((f(angles),) * 2, -1).to(dtype) for f in (torch.cos, torch.sin))

    def turned(x):
        return x * cos + torch.cat((-x[..., half:], x[..., :half]), -1) * sin
    return lambda: (turned(q), turned(k))


def kv_write_call(torch, dtype, s):
    width = s["kv_heads"] * s["head_dim"]
    new = [torch.randn(s["seq"], width, device="cuda", dtype=dtype) for _ in range(2)]
    cache = [torch.randn(s["context"], width, device="cuda", dtype=dtype) for _ in range(2)]
    slots = torch.arange(s["context"] - s["seq"], s["context"], device="cuda")
    return lambda: [cache[i].index_copy_(0, slots, new[i]) for i in range(2)]


def call_of(torch, op, dtype, s):
    f = torch.nn.functional
    if op == "rope":
        return rope_call(torch, dtype, s)
    if op == "kv_write":
        return kv_write_call(torch, dtype, s)
    if op == "copy":
        x, y = (torch.randn(s["values"], device="cuda", dtype=dtype) for _ in range(2))
        return lambda: y.copy_(x)
    if op == "silu_mul":
        n = s["intermediate"]
        x = torch.randn(s["seq"], 2 * n, device="cuda", dtype=dtype)
        return lambda: f.silu(x[:, :n]) * x[:, n:]
    n = s["hidden"]
    x, r = (torch.randn(s["seq"], n, device="cuda", dtype=dtype) for _ in range(2))
    w, b = (torch.randn(n, device="cuda", dtype=dtype) for _ in range(2))
    return {"rmsnorm": lambda: f.rms_norm(x, (n,), w, 1e-6),
            "layernorm": lambda: f.layer_norm(x, (n,), w, b, 1e-5),
            "layernorm_gelu": lambda: f.gelu(f.layer_norm(x, (n,), w, b, 1e-5)),
            "residual_rmsnorm": lambda: f.rms_norm(x + r, (n,), w, 1e-6),
            "residual_add": lambda: x + r,
            "gelu": lambda: f.gelu(x),
            "gelu_tanh": lambda: f.gelu(x, approximate="tanh"),
            "softmax": lambda: torch.softmax(x, -1)}[op]


def main(llmprof):
    import torch
    points = [point for sweep in SWEEPS for point in ours(llmprof, *sweep)]
    flush = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda")
    with torch.no_grad():
        calls = [call_of(torch, op, getattr(torch, dtype), sizes) for op, dtype, sizes, _ in points]
        times = median_times(torch, calls, flush, CALLS)
    slower = []
    print("key,ours_us,ours_gb_per_s,torch_us,torch_kernels,ratio")
    for (op, dtype, sizes, row), (us, kernels) in zip(points, times):
        key = f"{op} {dtype} " + " ".join(f"{name}={value}" for name, value in sizes.items())
        if row["status"] != "measured":
            print(f"{key},,,{us:.3f},{kernels},  # {row['status']}: {row['reason']}")
            continue
        mine = float(row["median_ns"]) / 1000
        line = f"{key},{mine:.3f},{float(row['bytes_per_s']) / 1e9:.0f},{us:.3f},{kernels},{mine / us:.3f}"
        print(line)
        if mine > 1.1 * us:
            slower.append(line)
    print("\n".join(["more than 10 % slower than torch:", *(slower or ["none"])]), file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1]) if len(sys.argv) == 2 else sys.exit(__doc__)
