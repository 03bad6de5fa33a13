#!/usr/bin/env python3
"""torch's scaled_dot_product_attention over prompts and decode steps: the time of its kernels by CUPTI, random data.

  bench_attention_peer.py [--cold] > torch.csv   times them, prints op,type,batch,tokens,heads,kv_heads,head_dim,us (the
                                                 median); tokens are those of a prompt, or of the cache that one new
                                                 token sees. --cold: the cache of the GPU is overwritten before each call
  bench_attention_peer.py --compare ours.csv torch.csv
                                                 our time over theirs, shape by shape; fails where one is over 1.3
  (bench_suite.py writes ours.csv, cold, by `llmprof bench`)

Keys and values lie as in our operators: batch, tokens, heads, head_dim.
"""
import csv
import statistics
import sys

from torch_times import median_times

PREFILL = [(1, 512, 32, 8, 128), (1, 2048, 32, 8, 128), (1, 8192, 32, 8, 128), (8, 4096, 32, 8, 128), (1, 2048, 64, 8, 128),
           (4, 2048, 32, 32, 128), (1, 4096, 32, 32, 64)]
DECODE = [(1, 1024, 32, 8, 128), (1, 4096, 32, 8, 128), (1, 32768, 32, 8, 128), (16, 1024, 32, 8, 128),
          (16, 4096, 32, 8, 128), (64, 4096, 32, 8, 128), (16, 4096, 64, 8, 128), (16, 4096, 32, 32, 128)]
CALLS = 20
FLUSH_BYTES = 256 << 20
KEY = ["op", "type", "batch", "tokens", "heads", "kv_heads", "head_dim"]


def measure(cold):
    import torch
    import torch.nn.functional as functional

    flush = torch.empty(FLUSH_BYTES if cold else 16, dtype=torch.uint8, device="cuda")

    def tokens_first(batch, tokens, heads, dim):
        return torch.randn(batch, tokens, heads, dim, dtype=torch.bfloat16, device="cuda").transpose(1, 2)

    print(f"# torch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}, {torch.cuda.get_device_name()}")
    print(",".join(KEY + ["us"]))
    for op, shapes in (("attention_prefill", PREFILL), ("attention_decode", DECODE)):
        for batch, tokens, heads, kv_heads, dim in shapes:
            q = tokens_first(batch, tokens if op == "attention_prefill" else 1, heads, dim)
            k, v = tokens_first(batch, tokens, kv_heads, dim), tokens_first(batch, tokens, kv_heads, dim)
            causal = op == "attention_prefill"
            [(us, _)] = median_times(torch, [lambda: functional.scaled_dot_product_attention(
                q, k, v, is_causal=causal, enable_gqa=heads != kv_heads)], flush, CALLS)
            print(f"{op},bfloat16,{batch},{tokens},{heads},{kv_heads},{dim},{us:.3f}", flush=True)


def read(path):
    with open(path) as file:
        rows = csv.DictReader(line for line in file if not line.startswith("#"))
        return {tuple(r[k] for k in KEY): float(r["us"]) for r in rows}


def compare(ours_path, theirs_path):
    ours, theirs = read(ours_path), read(theirs_path)
    both = [key for key in theirs if key in ours]
    if not both:
        sys.exit("the two have no shape in common")
    worst = 0
    for key in both:
        ratio = ours[key] / theirs[key]
        worst = max(worst, ratio)
        print(f"{ratio:6.3f}  {' '.join(key)}: {ours[key]:.2f} us, torch {theirs[key]:.2f} us")
    ratios = [ours[key] / theirs[key] for key in both]
    print(f"{len(both)} shapes: our time over torch's, median {statistics.median(ratios):.3f}, most {worst:.3f}")
    return 0 if worst <= 1.3 else 1


def main():
    arguments = sys.argv[1:]
    if arguments[:1] == ["--compare"] and len(arguments) == 3:
        return compare(arguments[1], arguments[2])
    if arguments not in ([], ["--cold"]):
        sys.exit(__doc__)
    return measure(arguments == ["--cold"])


if __name__ == "__main__":
    sys.exit(main())
