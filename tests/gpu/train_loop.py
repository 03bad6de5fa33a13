"""A plain training loop without any annotation: train_loop.py gpt|llama [STEPS]. Says what each step took by its own clock.
gpt: GPT-2 124 M in plain PyTorch, AdamW, an evaluation every 10 steps. llama: a small LlamaForCausalLM of transformers, two batches
added up for each update, activations recomputed."""
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

KIND, STEPS = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 30
LAYERS, WIDTH, HEADS, VOCABULARY, BATCH, LENGTH = 12, 768, 12, 50304, 8, 1024


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = (y.view(b, t, HEADS, -1).transpose(1, 2) for y in self.qkv(self.norm1(x)).chunk(3, dim=-1))
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, WIDTH))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks, self.norm = nn.ModuleList(Block() for _ in range(LAYERS)), nn.LayerNorm(WIDTH)

    def forward(self, tokens, targets):
        x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.norm(x), self.tokens.weight)
        return F.cross_entropy(logits.view(-1, VOCABULARY).float(), targets.view(-1))


def make():
    with torch.device("cuda"):
        if KIND == "gpt":
            return Gpt().to(torch.bfloat16), VOCABULARY, 1
        from transformers import LlamaConfig, LlamaForCausalLM
        model = LlamaForCausalLM(LlamaConfig(hidden_size=1024, intermediate_size=2816, num_hidden_layers=8, vocab_size=32000,
                                             num_attention_heads=16, num_key_value_heads=8)).to(torch.bfloat16)
        model.gradient_checkpointing_enable()
        model.train()
        return model, 32000, 2


model, vocabulary, batches = make()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)


def loss_of(tokens):
    if KIND == "gpt":
        return model(tokens, tokens)
    return model(input_ids=tokens, labels=tokens, use_cache=False).loss


times = []
for step in range(STEPS):
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(batches):
        loss = loss_of(torch.randint(0, vocabulary, (BATCH, LENGTH), device="cuda"))
        loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    torch.cuda.synchronize()
    times.append(1e3 * (time.perf_counter() - begin))
    if KIND == "gpt" and step % 10 == 9:
        with torch.no_grad():
            loss_of(torch.randint(0, vocabulary, (BATCH, LENGTH), device="cuda"))
steady = sorted(times[3:])
print(f"{KIND}: {STEPS} steps, {batches} batches each, {BATCH * LENGTH} tokens a batch, "
      f"median {steady[len(steady) // 2]:.2f} ms, first {times[0]:.1f} ms")
