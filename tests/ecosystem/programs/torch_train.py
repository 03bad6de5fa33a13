"""Trains a small transformer on the CPU with plain PyTorch. With --count it also counts the
FLOPs of one more step."""
import sys
import time

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

import figures

STEPS, BATCH, LENGTH, VOCABULARY, WIDTH, HEADS, LAYERS = 8, 8, 64, 512, 192, 4, 3


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm_attention, self.norm_mlp = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, HEADS, width // HEADS).transpose(1, 2)
                   for part in self.qkv(self.norm_attention(x)).chunk(3, dim=-1))
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(nn.functional.gelu(self.up(self.norm_mlp(x))))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.position = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.layers = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens):
        x = self.embedding(tokens) + self.position(torch.arange(tokens.shape[1]))
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


def main():
    torch.manual_seed(0)
    torch.set_num_threads(2)
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses, seconds, flops = [], [], None
    began = time.perf_counter()
    for step in range(STEPS):
        tokens = torch.randint(0, VOCABULARY, (BATCH, LENGTH + 1))
        start = time.perf_counter()
        loss = nn.functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seconds.append(time.perf_counter() - start)
        losses.append(loss.item().hex())
    elapsed = time.perf_counter() - began
    if "--count" in sys.argv:
        with FlopCounterMode(display=False) as counter:
            nn.functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten()).backward()
        flops = {str(name): value for name, value in counter.get_flop_counts()["Global"].items()}
    figures.show(losses=losses, steps=STEPS, elapsed_s=elapsed, step_s=seconds, flops_of_a_step=flops,
                 rows=BATCH * LENGTH, attention=dict(layers=LAYERS, heads=BATCH * HEADS, length=LENGTH, size=WIDTH // HEADS),
                 torch_threads=torch.get_num_threads(),
                 linears=[[layer.in_features, layer.out_features] for layer in model.modules() if isinstance(layer, nn.Linear)],
                 modules=[name for name, _ in model.named_modules()])


if __name__ == "__main__":
    main()
