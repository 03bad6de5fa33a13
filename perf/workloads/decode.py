#!/usr/bin/env python3
"""A Llama-shaped model of 1.2 billion parameters (random weights) that decodes one token at a time: what the overhead of
GPU capture is measured on. `--impl mini`: plain PyTorch functions and a static cache, the step optionally a CUDA graph
(about 500 kernels). `--impl hf`: transformers' Llama, eager, bound by its launches (about 700 a token).

Alone it prints one line of JSON: ms per token, times of its phases on CLOCK_MONOTONIC_RAW, and what its weights'
products add up to. With --turns it does blocks of steps when told to on stdin, so that many of it can take turns on one
GPU: "block N" answers {"ms": [one per step]}, "end" answers {"end_ns": …} and leaves."""
import argparse
import json
import os
import statistics
import sys
import time

HIDDEN, HEADS, KV_HEADS, FFN, VOCABULARY, LAYERS = 2048, 32, 8, 8192, 128256, 16
HEAD = HIDDEN // HEADS
WARM_UP = 3  # steps at the beginning of a turn that are not timed


def raw_ns():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--impl", choices=("mini", "hf"), default="mini")
    parser.add_argument("--graph", action="store_true", help="mini: the decode step as a CUDA graph")
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--steps", type=int, default=128)
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=0, help="repeat for so long instead")
    parser.add_argument("--layers", type=int, default=LAYERS)
    parser.add_argument("--no-ranges", action="store_true")
    parser.add_argument("--step-times", metavar="FILE", help="begin and end of every step, ns of CLOCK_MONOTONIC_RAW")
    parser.add_argument("--turns", action="store_true")
    parser.add_argument("--profile", choices=("none", "torch", "torch_full", "proton"), default="none")
    return parser.parse_args()


options = parse()
import torch
import torch.nn.functional as F

device = torch.device("cuda:0")
step_times = []
CAPACITY = options.prompt + max(options.steps, 128) + 16


def push(name):
    if not options.no_ranges:
        torch.cuda.nvtx.range_push(name)


def pop():
    if not options.no_ranges:
        torch.cuda.nvtx.range_pop()


def bf16(*shape, scale=0.02):
    return torch.randn(*shape, device=device, dtype=torch.bfloat16) * scale


class Layer:
    def __init__(self):
        self.qkv = bf16((HEADS + 2 * KV_HEADS) * HEAD, HIDDEN)
        self.out = bf16(HIDDEN, HIDDEN)
        self.gate_up = bf16(2 * FFN, HIDDEN)
        self.down = bf16(HIDDEN, FFN)
        self.norm_1 = torch.ones(HIDDEN, device=device, dtype=torch.bfloat16)
        self.norm_2 = torch.ones_like(self.norm_1)
        self.keys = torch.zeros(1, KV_HEADS, CAPACITY, HEAD, device=device, dtype=torch.bfloat16)
        self.values = torch.zeros_like(self.keys)


class Mini:
    def __init__(self):
        self.embedding = bf16(VOCABULARY, HIDDEN)
        self.layers = [Layer() for _ in range(options.layers)]
        self.norm = torch.ones(HIDDEN, device=device, dtype=torch.bfloat16)
        frequency = 500000.0 ** (-torch.arange(0, HEAD, 2, device=device).float() / HEAD)
        angle = torch.outer(torch.arange(CAPACITY, device=device).float(), frequency).repeat(1, 2)
        self.cos, self.sin = angle.cos().bfloat16(), angle.sin().bfloat16()
        self.places = torch.arange(CAPACITY, device=device)
        self.token = torch.zeros(1, 1, device=device, dtype=torch.long)
        self.position = torch.zeros(1, device=device, dtype=torch.long)
        self.graph = None

    def rotate(self, x, position):
        half = torch.cat((-x[..., HEAD // 2:], x[..., :HEAD // 2]), -1)
        return x * self.cos[position] + half * self.sin[position]

    def attend(self, layer, q, k, v, mask):
        if mask is not None:  # decode: the queries that share keys stand in for a sequence
            grouped = q.reshape(1, KV_HEADS, HEADS // KV_HEADS, HEAD)
            return F.scaled_dot_product_attention(grouped, layer.keys, layer.values, attn_mask=mask).reshape(1, 1, -1)
        share = HEADS // KV_HEADS
        k, v = k.repeat_interleave(share, 1), v.repeat_interleave(share, 1)
        return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(1, q.shape[2], -1)

    def forward(self, tokens, position, decode):
        x = F.embedding(tokens, self.embedding)
        length = tokens.shape[1]
        mask = (self.places <= position[-1])[None, None, None] if decode else None
        for layer in self.layers:
            h = F.rms_norm(x, (HIDDEN,), layer.norm_1, 1e-5)
            q, k, v = F.linear(h, layer.qkv).view(1, length, -1, HEAD).transpose(1, 2).split((HEADS, KV_HEADS, KV_HEADS), 1)
            q, k = self.rotate(q, position), self.rotate(k, position)
            layer.keys.index_copy_(2, position, k)
            layer.values.index_copy_(2, position, v)
            x = x + F.linear(self.attend(layer, q, k, v, mask), layer.out)
            gate, up = F.linear(F.rms_norm(x, (HIDDEN,), layer.norm_2, 1e-5), layer.gate_up).chunk(2, -1)
            x = x + F.linear(F.silu(gate) * up, layer.down)
        return F.linear(F.rms_norm(x[:, -1:], (HIDDEN,), self.norm, 1e-5), self.embedding).argmax(-1)

    def prefill(self, prompt):
        self.token.copy_(self.forward(prompt, self.places[:prompt.shape[1]], False))
        self.position.fill_(prompt.shape[1])

    def compute_step(self):
        self.token.copy_(self.forward(self.token, self.position, True))
        self.position.add_(1)

    def capture(self):
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.compute_step()
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.compute_step()

    def step(self):
        self.graph.replay() if self.graph is not None else self.compute_step()


class HuggingFace:
    def __init__(self):
        from transformers import LlamaConfig, LlamaForCausalLM
        config = LlamaConfig(hidden_size=HIDDEN, intermediate_size=FFN, num_hidden_layers=options.layers,
                             num_attention_heads=HEADS, num_key_value_heads=KV_HEADS, vocab_size=VOCABULARY,
                             max_position_embeddings=4096, tie_word_embeddings=True)
        torch.set_default_dtype(torch.bfloat16)
        with device:
            self.model = LlamaForCausalLM(config).eval()
        torch.set_default_dtype(torch.float32)

    def run(self, tokens, cache):
        out = self.model(input_ids=tokens, past_key_values=cache, use_cache=True, logits_to_keep=1)
        self.cache, self.token = out.past_key_values, out.logits[:, -1:].argmax(-1)

    def prefill(self, prompt):
        self.run(prompt, None)

    def step(self):
        self.run(self.token, self.cache)


def prefill(model, prompt):
    push("prefill")
    model.prefill(prompt)
    torch.cuda.synchronize()
    pop()


def decode(model, steps):
    """Milliseconds of each step, the wait for its token included."""
    times = []
    for _ in range(steps):
        begin = raw_ns()
        push("decode_step")
        model.step()
        torch.cuda.synchronize()
        pop()
        end = raw_ns()
        times.append((end - begin) / 1e6)
        if options.step_times:
            step_times.append((begin, end))
    return times


class Profiler:
    """The peers that live inside the program. PyTorch's keeps every event, so it runs one block at a time."""

    def __init__(self):
        self.session = None
        if options.profile == "proton":
            import triton.profiler as proton
            self.proton = proton
            proton.start(f"/tmp/proton_{os.getpid()}")

    def begin(self):
        if options.profile.startswith("torch"):
            full = options.profile == "torch_full"
            self.session = torch.profiler.profile(record_shapes=full, with_stack=full, profile_memory=full)
            self.session.start()

    def end(self):
        if self.session is not None:
            self.session.stop()
            self.session = None

    def finish(self):
        if options.profile == "proton":
            self.proton.finalize()
            for suffix in ("", ".hatchet"):
                if os.path.exists(f"/tmp/proton_{os.getpid()}{suffix}"):
                    os.remove(f"/tmp/proton_{os.getpid()}{suffix}")


def resident_bytes():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmRSS"))


def weight_flops_per_token():
    layer = (HEADS + 2 * KV_HEADS) * HEAD * HIDDEN + HIDDEN * HIDDEN + 2 * FFN * HIDDEN + FFN * HIDDEN
    return 2 * (options.layers * layer + VOCABULARY * HIDDEN)


def take_turns(model, prompt, profiler):
    answer = sys.stdout
    print(json.dumps({"ready": os.getpid(), "torch": torch.__version__}), file=answer, flush=True)
    for line in sys.stdin:
        words = line.split()
        if words[0] == "end":
            break
        profiler.begin()
        prefill(model, prompt)
        decode(model, WARM_UP)
        times = decode(model, int(words[1]))
        profiler.end()
        print(json.dumps({"ms": [round(t, 5) for t in times]}), file=answer, flush=True)
    profiler.finish()
    torch.cuda.synchronize()
    print(json.dumps({"end_ns": raw_ns(), "rss": resident_bytes()}), file=answer, flush=True)


def run_alone(model, prompt, profiler):
    phases, times, memory = [], [], []
    limit = time.monotonic() + options.seconds
    rounds = 0
    while rounds < options.repeat or time.monotonic() < limit:
        begin = raw_ns()
        prefill(model, prompt)
        middle = raw_ns()
        profiler.begin()
        block = decode(model, options.steps)
        profiler.end()
        phases.append({"prefill_ns": middle - begin, "begin_ns": middle, "end_ns": raw_ns(), "steps": options.steps})
        if rounds > 0:  # the first one warms up
            times += block
        rounds += 1
        if options.seconds:
            phases = phases[-1:]
            times = times[-1000:]
            memory.append((round(time.monotonic(), 2), resident_bytes()))
    profiler.finish()
    print(json.dumps({"impl": options.impl, "graph": options.graph, "steps": options.steps, "rounds": rounds,
                      "ms_per_token": statistics.median(times or block), "phases": phases,
                      "weight_flops_per_token": weight_flops_per_token(),
                      "memory": memory[::max(1, len(memory) // 500)], "end_ns": raw_ns()}), flush=True)


def main():
    torch.manual_seed(0)
    with torch.inference_mode():
        model = HuggingFace() if options.impl == "hf" else Mini()
        prompt = torch.randint(0, VOCABULARY, (1, options.prompt), device=device)
        profiler = Profiler()
        model.prefill(prompt)
        if options.graph and options.impl == "mini":
            model.capture()
        decode(model, 4)
        torch.cuda.synchronize()
        step_times.clear()
        (take_turns if options.turns else run_alone)(model, prompt, profiler)
    if options.step_times:
        with open(options.step_times, "w") as file:
            file.writelines(f"{begin} {end}\n" for begin, end in step_times)


main()
