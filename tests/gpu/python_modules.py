#!/usr/bin/env python3
"""A program as users have them, for python_modules.sh: nothing in it knows of llmprof. Prints one line of JSON.

python_modules.py PART…   parts: llama (transformers, eager), launches (cost of one launch under 22 Python frames),
graph (a model captured and replayed), compile (torch.compile, one graph, CUDA graphs on), train (forward, backward and
optimizer, 8 steps, the second half with checkpointing)."""
import hashlib
import json
import statistics
import sys
import time

import torch

device = torch.device("cuda:0")
torch.manual_seed(0)
out = {"torch": torch.__version__}


class Block(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up_proj = torch.nn.Linear(width, 4 * width, bias=False)
        self.down_proj = torch.nn.Linear(4 * width, width, bias=False)

    def forward(self, x):
        return x + self.down_proj(torch.nn.functional.silu(self.up_proj(x)))


class Tiny(torch.nn.Module):
    def __init__(self, width=256, layers=4):
        super().__init__()
        self.layers = torch.nn.ModuleList(Block(width) for _ in range(layers))
        self.norm = torch.nn.LayerNorm(width)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)


def digest(tensor):
    return hashlib.sha256(tensor.detach().cpu().contiguous().float().numpy().tobytes()).hexdigest()[:16]


def llama():
    from transformers import LlamaConfig, LlamaForCausalLM
    config = LlamaConfig(hidden_size=512, intermediate_size=1024, num_hidden_layers=4, num_attention_heads=8,
                         num_key_value_heads=4, vocab_size=4096, max_position_embeddings=512)
    model = LlamaForCausalLM(config).to(device, torch.bfloat16).eval()
    ids = torch.arange(1, 65, device=device)[None]
    tokens, times, cache = [], [], None
    with torch.no_grad():
        for _ in range(64):
            begin = time.perf_counter()
            result = model(ids, past_key_values=cache, use_cache=True)
            cache, ids = result.past_key_values, result.logits[:, -1:].argmax(-1)
            tokens.append(int(ids))
            times.append(time.perf_counter() - begin)
    out["llama_tokens"] = hashlib.sha256(repr(tokens).encode()).hexdigest()[:16]
    out["llama_ms_per_token"] = round(1e3 * statistics.median(times[8:]), 3)
    out["llama_logits"] = digest(result.logits)


def launches():
    x = torch.zeros(1, device=device)

    def at(depth):
        if depth:
            return at(depth - 1)
        best = float("inf")
        for _ in range(60):
            torch.cuda.synchronize()
            begin = time.perf_counter()
            for _ in range(500):
                x.add_(1)
            best = min(best, (time.perf_counter() - begin) / 500)
        return best
    at(20)
    out["launch_ns"] = round(1e9 * at(20))


def graph():
    model, x = Tiny().to(device).eval(), torch.randn(8, 256, device=device)
    with torch.no_grad():
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            eager = model(x).clone()
        torch.cuda.synchronize()
        captured = torch.cuda.CUDAGraph()
        with torch.cuda.graph(captured):
            y = model(x)
        for _ in range(50):
            captured.replay()
        torch.cuda.synchronize()
    out["graph_equal"] = bool(torch.equal(eager, y))
    out["graph_result"] = digest(y)


def compile():
    torch.set_float32_matmul_precision("highest")
    model, x = Tiny(layers=2).to(device).eval(), torch.randn(8, 256, device=device)
    compiled = torch.compile(model, mode="reduce-overhead", fullgraph=True)
    with torch.no_grad():
        for _ in range(5):
            y = compiled(x).clone()
        out["compile_close"] = bool(torch.allclose(model(x), y, atol=1e-4))
    counters = torch._dynamo.utils.counters
    out["graph_breaks"] = sum(counters["graph_break"].values())
    out["frames_compiled"] = counters["frames"].get("ok", 0)
    try:
        Tiny.forward = lambda self, x: x.nonexistent
        model(x)
    except AttributeError:
        out["raises"] = True


def train():
    from torch.utils.checkpoint import checkpoint
    torch.use_deterministic_algorithms(True, warn_only=True)
    model, x = Tiny().to(device).train(), torch.randn(64, 256, device=device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    plain = Tiny.forward

    def again(self, x):
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False)
        return self.norm(x)
    for step in range(8):
        Tiny.forward = plain if step < 4 else again
        loss = (model(x) - 1).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    Tiny.forward = plain
    out["train_loss"] = float(loss).hex()
    out["train_result"] = digest(torch.cat([p.flatten() for p in model.parameters()]))
    out["train_peak_bytes"] = torch.cuda.max_memory_allocated()


for part in sys.argv[1:]:
    begin = time.perf_counter()
    {"llama": llama, "launches": launches, "graph": graph, "compile": compile, "train": train}[part]()
    out[f"{part}_s"] = round(time.perf_counter() - begin, 1)
print(json.dumps(out))
