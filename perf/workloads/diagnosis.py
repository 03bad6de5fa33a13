#!/usr/bin/env python3
"""A Llama-shaped model of 1.2 billion parameters (random weights) with faults to plant, for the diagnosis and for diff:
every variant has one known reason to be slow. Prints one line of JSON: what the program itself measured.

  --type float32|bfloat16   the type of weights, cache and arithmetic (TF32 stays off)
  --graph                   the decode step as a CUDA graph
  --batch N                 sequences at once
  --fetch                   read each token on the host (one synchronisation per token)
  --pageable MIB            copy so much pageable memory to the device before every step
  --slow N                  execute one module (layers.7.mlp) N times more in every step
  --host-load               make the weights on the host and copy them (pageable memory), as loading a checkpoint does
  --train                   a training step (forward, backward, optimizer) instead of decoding"""
import argparse
import json
import os
import statistics
import sys
import time

sys.path.insert(0, os.environ.get("LLMPROF_PYTHON", os.path.join(os.path.dirname(__file__), "..", "..", "python")))
import llmprof

HIDDEN, HEADS, KV_HEADS, FFN, VOCABULARY = 2048, 32, 8, 8192, 128256
HEAD = HIDDEN // HEADS
EPSILON = 1e-5

parser = argparse.ArgumentParser()
parser.add_argument("--type", choices=("float32", "bfloat16"), default="bfloat16")
parser.add_argument("--batch", type=int, default=1)
parser.add_argument("--graph", action="store_true")
parser.add_argument("--prompt", type=int, default=512)
parser.add_argument("--steps", type=int, default=64)
parser.add_argument("--repeat", type=int, default=2)
parser.add_argument("--layers", type=int, default=16)
parser.add_argument("--fetch", action="store_true")
parser.add_argument("--pageable", type=int, default=0)
parser.add_argument("--slow", type=int, default=0)
parser.add_argument("--host-load", action="store_true")
parser.add_argument("--train", action="store_true")
options = parser.parse_args()

import torch
import torch.nn.functional as F
from torch import nn

device = torch.device("cuda:0")
dtype = getattr(torch, options.type)
CAPACITY = options.prompt + options.steps + 16

CONFIG = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": HIDDEN,
          "intermediate_size": FFN, "num_hidden_layers": options.layers, "num_attention_heads": HEADS,
          "num_key_value_heads": KV_HEADS, "vocab_size": VOCABULARY, "max_position_embeddings": 4096,
          "tie_word_embeddings": True, "torch_dtype": options.type, "hidden_act": "silu", "rms_norm_eps": EPSILON}


class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(HIDDEN))

    def forward(self, x):
        return F.rms_norm(x, (HIDDEN,), self.weight, EPSILON)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q_proj = nn.Linear(HIDDEN, HEADS * HEAD, bias=False)
        self.k_proj = nn.Linear(HIDDEN, KV_HEADS * HEAD, bias=False)
        self.v_proj = nn.Linear(HIDDEN, KV_HEADS * HEAD, bias=False)
        self.o_proj = nn.Linear(HEADS * HEAD, HIDDEN, bias=False)
        if not options.train:
            shape = (options.batch, KV_HEADS, CAPACITY, HEAD)
            self.register_buffer("keys", torch.zeros(shape))
            self.register_buffer("values", torch.zeros(shape))

    def forward(self, x, cos, sin, position, mask):
        batch, length = x.shape[:2]
        q, k, v = (p(x).view(batch, length, -1, HEAD).transpose(1, 2) for p in (self.q_proj, self.k_proj, self.v_proj))
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        if not options.train:
            self.keys.index_copy_(2, position, k)
            self.values.index_copy_(2, position, v)
        if mask is not None:  # decode: the queries that share keys stand in for a sequence
            out = F.scaled_dot_product_attention(q.reshape(batch, KV_HEADS, HEADS // KV_HEADS, HEAD), self.keys,
                                                 self.values, attn_mask=mask)
            return self.o_proj(out.reshape(batch, 1, -1))
        share = HEADS // KV_HEADS
        out = F.scaled_dot_product_attention(q, k.repeat_interleave(share, 1), v.repeat_interleave(share, 1), is_causal=True)
        return self.o_proj(out.transpose(1, 2).reshape(batch, length, -1))


def rotate(x, cos, sin):
    return x * cos + torch.cat((-x[..., HEAD // 2:], x[..., :HEAD // 2]), -1) * sin


class Mlp(nn.Module):
    def __init__(self, slow):
        super().__init__()
        self.gate_proj = nn.Linear(HIDDEN, FFN, bias=False)
        self.up_proj = nn.Linear(HIDDEN, FFN, bias=False)
        self.down_proj = nn.Linear(FFN, HIDDEN, bias=False)
        self.slow = slow

    def forward(self, x):
        out = self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))
        for _ in range(self.slow):  # the same again, its result unused
            self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))
        return out


class Layer(nn.Module):
    def __init__(self, slow):
        super().__init__()
        self.input_layernorm, self.self_attn = Norm(), Attention()
        self.post_attention_layernorm, self.mlp = Norm(), Mlp(slow)

    def forward(self, x, *rest):
        x = x + self.self_attn(self.input_layernorm(x), *rest)
        return x + self.mlp(self.post_attention_layernorm(x))


class Llama(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed_tokens = nn.Embedding(VOCABULARY, HIDDEN)
        self.layers = nn.ModuleList(Layer(options.slow if i == 7 else 0) for i in range(options.layers))
        self.norm = Norm()
        self.lm_head = nn.Linear(HIDDEN, VOCABULARY, bias=False)
        self.lm_head.weight = self.embed_tokens.weight
        frequency = 500000.0 ** (-torch.arange(0, HEAD, 2).float() / HEAD)
        angle = torch.outer(torch.arange(CAPACITY).float(), frequency).repeat(1, 2)
        self.register_buffer("cos", angle.cos())
        self.register_buffer("sin", angle.sin())
        self.register_buffer("places", torch.arange(CAPACITY))

    def forward(self, tokens, position, decode=False, all_positions=False):
        x = self.embed_tokens(tokens)
        mask = (self.places <= position[-1])[None, None, None] if decode else None
        cos, sin = self.cos[position], self.sin[position]
        for layer in self.layers:
            x = layer(x, cos, sin, position, mask)
        return self.lm_head(self.norm(x if all_positions else x[:, -1:]))


def make_model():
    with torch.device("cpu") if options.host_load else device:
        return Llama().to(device, dtype)


class Decoder:
    def __init__(self, model):
        self.model, self.graph = model, None
        self.token = torch.zeros(options.batch, 1, device=device, dtype=torch.long)
        self.position = torch.zeros(1, device=device, dtype=torch.long)

    def prefill(self, prompt):
        self.token.copy_(self.model(prompt, self.model.places[:prompt.shape[1]]).argmax(-1))
        self.position.fill_(prompt.shape[1])

    def compute(self):
        self.token.copy_(self.model(self.token, self.position, decode=True).argmax(-1))
        self.position.add_(1)

    def capture(self):
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            for _ in range(3):
                self.compute()
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.compute()

    def step(self):
        self.compute() if self.graph is None else self.graph.replay()


def decode(decoder, baggage):
    times, here = [], options.prompt
    for _ in range(options.steps):
        begin = time.perf_counter()
        here += 1
        with llmprof.step("decode", batch=options.batch, tokens=1, context=here):
            if baggage is not None:
                baggage.to(device)
            decoder.step()
            if options.fetch:
                decoder.token.tolist()
        times.append((time.perf_counter() - begin) * 1e3)
    torch.cuda.synchronize()
    return times


def infer():
    with llmprof.stage("load"):
        model = make_model().eval()
        model.places = model.places.long()
        torch.cuda.synchronize()
    llmprof.model(json.dumps(CONFIG))
    prompt = torch.randint(0, VOCABULARY, (options.batch, options.prompt), device=device)
    baggage = torch.ones(options.pageable << 20, dtype=torch.uint8) if options.pageable else None
    decoder = Decoder(model)
    with torch.inference_mode():
        with llmprof.stage("warm-up"):
            decoder.prefill(prompt)
            if options.graph:
                decoder.capture()
            torch.cuda.synchronize()
        total = []
        for _ in range(options.repeat):
            with llmprof.step("prefill", batch=options.batch, tokens=options.prompt, context=options.prompt):
                decoder.prefill(prompt)
                torch.cuda.synchronize()
            begin = time.perf_counter()
            decode(decoder, baggage)
            total.append((time.perf_counter() - begin) * 1e3 / options.steps)
    return {"ms_per_token": round(statistics.median(total), 4)}


def train():
    model = make_model()
    model.places = model.places.long()
    llmprof.model(json.dumps(CONFIG))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    times = []
    for _ in range(options.steps):
        begin = time.perf_counter()
        tokens = torch.randint(0, VOCABULARY, (options.batch, options.prompt), device=device)
        shape = {"batch": options.batch, "tokens": options.prompt, "context": options.prompt}
        with llmprof.step("forward", **shape):
            logits = model(tokens, model.places[:options.prompt], all_positions=True)
            loss = F.cross_entropy(logits.flatten(0, 1).float(), tokens.flatten())
        with llmprof.step("backward", **shape):
            loss.backward()
        with llmprof.step("optimizer", **shape):
            optimizer.step()
            optimizer.zero_grad()
        loss.item()
        times.append((time.perf_counter() - begin) * 1e3)
    return {"ms_per_step": round(statistics.median(times[2:] or times), 3)}


torch.manual_seed(0)
print(json.dumps({"variant": sys.argv[1:], **(train() if options.train else infer())}), flush=True)
