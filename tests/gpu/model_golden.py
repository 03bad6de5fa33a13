"""Derives libs/model/zoo/golden.txt from what transformers counted, without llmprof.

Projections, experts and logits come from the FLOPs of torch's counter (perf/results/…-model-counts.md); only attention is
worked out here, from the config, because torch counts whole squares and golden.txt causal pairs.
Usage: tests/gpu/model_golden.py [RESULTS.md] > libs/model/zoo/golden.txt
"""
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).parents[2]
N, C = 128, 1024  # tokens of the prefill, context of the decode step
PAIRS = N * (N + 1) // 2

HEADER = f"""\
# What the built-in models must cost. Written by tests/gpu/model_golden.py from perf/results/2026-11-15-h200-model-counts.md,
# where transformers counted; golden_test.cpp holds libs/model to it. docs/format/model-golden.md derives it by hand.
#   parameters     tied ones once          active         without the experts that a token does not visit
#   prefill        FLOPs, 1 x {N} tokens: causal, logits for the last    decode   FLOPs of one token at context {C}
#   kv             bytes a token adds to the cache                      weights  bytes, as the checkpoint stores them
#   torch          FLOPs of 1 x {N} as torch counts: squares, all logits. Left out: the angles of the rotation, and the
#                  experts that transformers' Llama 4 runs although no token chose them
"""


def counted(path):
    rows = {}
    for line in path.read_text().splitlines():
        cells = [cell.strip().replace(",", "") for cell in line.strip("|").split("|")]
        if len(cells) == 6 and cells[2].isdigit():
            rows[cells[0]] = [int(cell) for cell in cells[2:]]
    return rows


def layer_count(config):
    return config.get("num_hidden_layers") or config["n_layer"]


def windows(config):
    """Per layer: keys that a query sees at most; 0: all."""
    window, layers = config.get("sliding_window", 0), range(layer_count(config))
    if config["model_type"] in ("gemma2", "gpt_oss"):  # every other layer, the first one too
        return [0 if layer % 2 else window for layer in layers]
    if config["model_type"] == "gemma3_text":  # five of six
        return [0 if (layer + 1) % 6 == 0 else window for layer in layers]
    return [window for layer in layers]


def attention(config):
    """Heads, products of a pair of query and key per head (score and value), cached values of a layer."""
    if "kv_lora_rank" in config:
        size = config["qk_nope_head_dim"] + config["qk_rope_head_dim"]
        return config["num_attention_heads"], size + config["v_head_dim"], config["kv_lora_rank"] + config["qk_rope_head_dim"]
    heads = config.get("num_attention_heads") or config["n_head"]
    size = config.get("head_dim") or (config.get("hidden_size") or config["n_embd"]) // heads
    return heads, 2 * size, 2 * size * config.get("num_key_value_heads", heads)


def decode_attention(config):
    """Of one token. A latent is cheaper absorbed: the expanded way multiplies the whole context by kv_b_proj."""
    heads, products, _ = attention(config)
    if "kv_lora_rank" in config:
        products = 2 * config["kv_lora_rank"] + config["qk_rope_head_dim"]
    return sum(2 * heads * products * (min(C, window) if window else C) for window in windows(config))


def experts(config):
    """Layers with experts, experts of a layer, chosen ones, values of one's matrices, of its biases."""
    total = config.get("n_routed_experts") or config.get("num_local_experts") or config.get("num_experts") or 0
    if not total:
        return 0, 0, 0, 0, 0
    layers = layer_count(config) - config.get("first_k_dense_replace", 0)
    layers //= config.get("interleave_moe_layer_step", 1)
    width = config.get("moe_intermediate_size") or config["intermediate_size"]
    biases = 2 * width + config["hidden_size"] if config["model_type"] == "gpt_oss" else 0
    return layers, total, config["num_experts_per_tok"], 3 * config["hidden_size"] * width, biases


def weight_bytes(config, parameters):
    plain = {"float32": 4, "bfloat16": 2, "float16": 2}[config["dtype"]]
    quantization = config.get("quantization_config")
    if not quantization:
        return parameters * plain
    layers, total, _, matrices, _ = experts(config)
    if quantization["quant_method"] == "mxfp4":  # the experts' matrices: 4 bits, and 8 bits of scale for 32 of them
        packed = layers * total * matrices
        return packed * 4.25 / 8 + (parameters - packed) * plain
    # fp8: every matrix of a layer but the router; a float32 scale for each block of 128 x 128.
    hidden, all_layers = config["hidden_size"], layer_count(config)
    norms = all_layers * (2 * hidden + config["q_lora_rank"] + config["kv_lora_rank"]) + hidden
    other = 2 * hidden * config["vocab_size"] + norms + layers * total * (hidden + 1)
    return (parameters - other) * (1 + 4 / 128**2) + other * plain


def row(entry, parameters, buffers, flops, angles):
    config = entry["config"]
    heads, products, cached = attention(config)
    layers, total, chosen, matrices, biases = experts(config)
    parameters += buffers
    torch = flops - angles
    if config["model_type"] == "llama4_text":  # all experts were run
        torch -= 2 * N * layers * (total - chosen) * matrices
    squares = layer_count(config) * 2 * heads * products * N * N
    tokens = torch - squares  # projections, experts and logits of N tokens
    causal = layer_count(config) * 2 * heads * products * PAIRS
    logits = 2 * (config.get("hidden_size") or config["n_embd"]) * config["vocab_size"]
    assert tokens % N == 0, entry["name"]
    element = {"float32": 4, "bfloat16": 2, "float16": 2}[config["dtype"]]
    return [
        entry["name"],
        parameters,
        parameters - layers * (total - chosen) * (matrices + biases),
        tokens + causal - (N - 1) * logits,
        tokens // N + decode_attention(config),
        cached * element * layer_count(config),
        round(weight_bytes(config, parameters)),
        torch,
    ]


def main():
    results = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "perf/results/2026-11-15-h200-model-counts.md"
    counts = counted(results)
    rows = [["name", "parameters", "active", "prefill", "decode", "kv", "weights", "torch"]]
    for path in sorted((ROOT / "libs/model/zoo").glob("*.json")):
        for entry in json.loads(path.read_text())["models"]:
            rows.append([str(cell) for cell in row(entry, *counts[entry["name"]])])
    widths = [max(len(cells[i]) for cells in rows) for i in range(len(rows[0]))]
    print(HEADER, end="")
    for cells in rows:
        aligned = [cells[0].ljust(widths[0])] + [cell.rjust(width) for cell, width in zip(cells[1:], widths[1:])]
        print("  ".join(aligned).rstrip())


if __name__ == "__main__":
    main()
