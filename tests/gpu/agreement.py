"""One program that three profilers look at: a small Llama-like decoder, prefill and decode, eager or as a CUDA graph.

    python3 agreement.py eager|graph [STEPS] [--kineto FILE]

What stands between cudaProfilerStart and cudaProfilerStop is compared. Without --kineto nothing but NVTX ranges are
emitted, so that llmprof and Nsight Systems see the same work."""
import sys

import torch

MODE, STEPS = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 and sys.argv[2].isdigit() else 200
KINETO = sys.argv[sys.argv.index("--kineto") + 1] if "--kineto" in sys.argv else None
HIDDEN, HEADS, LAYERS, VOCABULARY, CONTEXT = 1024, 16, 4, 8000, 256
torch.manual_seed(0)


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        linear = lambda m, n: torch.nn.Linear(m, n, bias=False)
        self.qkv, self.out = linear(HIDDEN, 3 * HIDDEN), linear(HIDDEN, HIDDEN)
        self.up, self.down = linear(HIDDEN, 4 * HIDDEN), linear(4 * HIDDEN, HIDDEN)
        self.before, self.between = torch.nn.RMSNorm(HIDDEN), torch.nn.RMSNorm(HIDDEN)

    def forward(self, x):
        batch, tokens, _ = x.shape
        q, k, v = self.qkv(self.before(x)).view(batch, tokens, 3, HEADS, HIDDEN // HEADS).permute(2, 0, 3, 1, 4)
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=tokens > 1)
        x = x + self.out(y.transpose(1, 2).reshape(batch, tokens, HIDDEN))
        return x + self.down(torch.nn.functional.silu(self.up(self.between(x))))


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(VOCABULARY, HIDDEN)
        self.layers = torch.nn.ModuleList(Layer() for _ in range(LAYERS))
        self.head = torch.nn.Linear(HIDDEN, VOCABULARY, bias=False)

    def forward(self, ids):
        x = self.embedding(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(x[:, -1]).argmax(-1, keepdim=True)


class Range:
    """A range of the framework while it profiles itself, an NVTX range otherwise."""

    def __init__(self, name):
        self.name = name

    def __enter__(self):
        self.inner = torch.profiler.record_function(self.name) if KINETO else None
        self.inner.__enter__() if self.inner else torch.cuda.nvtx.range_push(self.name)

    def __exit__(self, *_):
        self.inner.__exit__(None, None, None) if self.inner else torch.cuda.nvtx.range_pop()


@torch.inference_mode()
def main():
    model = Model().to("cuda", torch.bfloat16)
    prompt = torch.randint(0, VOCABULARY, (2, CONTEXT), device="cuda")
    token = prompt[:, :1].clone()
    for _ in range(3):
        model(prompt), model(token)
    torch.cuda.synchronize()
    graph = None
    if MODE == "graph":
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            model(token)
        graph.replay()
        torch.cuda.synchronize()

    def measured():
        with Range("prefill"):
            model(prompt)
            torch.cuda.synchronize()
        for _ in range(STEPS):
            with Range("decode_step"):
                graph.replay() if graph else model(token)
                torch.cuda.synchronize()

    if KINETO:
        activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
        with torch.profiler.profile(activities=activities, record_shapes=True) as profiler:
            measured()
        profiler.export_chrome_trace(KINETO)
    else:
        torch.cuda.profiler.start()
        measured()
        torch.cuda.profiler.stop()
    print(f"{MODE}: {STEPS} steps")


main()
