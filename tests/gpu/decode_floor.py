"""A decode step of a model's matrices on the GPU, as one CUDA graph: what a real machine does against the floor of
`llmprof model`. Every projection of every layer and the logits, bfloat16, random weights, one token; attention over the
context with torch's own kernel. No floor may be beaten. Prints JSON. Usage: tests/gpu/decode_floor.py LLMPROF MODEL…"""
import json
import statistics
import subprocess
import sys

import torch
import torch.nn.functional as F

CONTEXT = 1024
SHAPES = {  # layers, hidden, heads, kv heads, head size, MLP, vocabulary
    "llama-3.2-1b": (16, 2048, 32, 8, 64, 8192, 128256),
    "llama-3.1-8b": (32, 4096, 32, 8, 128, 14336, 128256),
    "qwen3-14b": (40, 5120, 40, 8, 128, 17408, 151936),
}


def step_of(name):
    layers, hidden, heads, kv, size, mlp, vocabulary = SHAPES[name]

    def matrix(out, into):
        return torch.randn(out, into, device="cuda", dtype=torch.bfloat16) * into ** -0.5

    weights = [(matrix(heads * size, hidden), matrix(kv * size, hidden), matrix(kv * size, hidden),
                matrix(hidden, heads * size), matrix(mlp, hidden), matrix(mlp, hidden), matrix(hidden, mlp))
               for _ in range(layers)]
    head = matrix(vocabulary, hidden)
    caches = [torch.randn(2, 1, kv, CONTEXT, size, device="cuda", dtype=torch.bfloat16) for _ in range(layers)]
    x = torch.randn(1, hidden, device="cuda", dtype=torch.bfloat16)

    def step():
        y = x
        for (q, k, v, o, gate, up, down), cache in zip(weights, caches):
            n = F.rms_norm(y, (hidden,))
            cache[0, :, :, -1] = F.linear(n, k).view(1, kv, size)
            cache[1, :, :, -1] = F.linear(n, v).view(1, kv, size)
            a = F.scaled_dot_product_attention(F.linear(n, q).view(1, heads, 1, size), cache[0], cache[1], enable_gqa=True)
            y = y + F.linear(a.view(1, heads * size), o)
            n = F.rms_norm(y, (hidden,))
            y = y + F.linear(F.silu(F.linear(n, gate)) * F.linear(n, up), down)
        return F.linear(F.rms_norm(y, (hidden,)), head).argmax()

    return step


def milliseconds(step):
    for _ in range(3):
        step()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    times = []
    for _ in range(60):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times[10:])


def main():
    rows = []
    for name in sys.argv[2:]:
        with torch.no_grad():
            measured = milliseconds(step_of(name))
        torch.cuda.empty_cache()
        told = json.loads(subprocess.run(
            [sys.argv[1], "model", name, "--context", str(CONTEXT), "--measured-tpot", f"{measured}ms", "--json"],
            check=True, capture_output=True, text=True).stdout)
        decode = next(stage for stage in told["stages"] if stage["name"] == "decode")
        floor = decode["floor_ns"] / 1e6
        rows.append({"model": name, "device": told["device"]["name"], "measured_ms": measured, "floor_ms": floor,
                     "floor_share": floor / measured, "told": told["measured"]})
        print(json.dumps(rows[-1]), flush=True)
    beaten = [row["model"] for row in rows if row["measured_ms"] < row["floor_ms"]]
    print("FAIL: faster than the floor: " + ", ".join(beaten) if beaten else f"PASS: no floor of {len(rows)} is beaten")
    return 1 if beaten else 0


sys.exit(main())
