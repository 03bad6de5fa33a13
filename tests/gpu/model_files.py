"""Folders that transformers and the safetensors library write, read by `llmprof model`: parameters and bytes must equal what
torch holds and what the files hold, with nothing left unexplained. Needs transformers; the CPU is enough.
Usage: tests/gpu/model_files.py LLMPROF"""
import json
import os
import subprocess
import sys
import tempfile

import torch
from safetensors import safe_open
from transformers import AutoConfig, AutoModelForCausalLM

SMALL = dict(hidden_size=64, num_hidden_layers=4, num_attention_heads=4, vocab_size=500, max_position_embeddings=128)
GROUPED = dict(SMALL, intermediate_size=96, num_key_value_heads=2)
MODELS = {
    "gpt2": dict(n_embd=64, n_layer=3, n_head=4, vocab_size=500, n_positions=64),
    "llama": dict(GROUPED, tie_word_embeddings=False),
    "llama, tied": dict(GROUPED, tie_word_embeddings=True),
    "mistral": dict(GROUPED, sliding_window=16),
    "qwen2": GROUPED,
    "qwen3": dict(GROUPED, head_dim=32),
    "qwen2_moe": dict(GROUPED, num_experts=6, num_experts_per_tok=2, moe_intermediate_size=48,
                      shared_expert_intermediate_size=80),
    "qwen3_moe": dict(GROUPED, head_dim=16, num_experts=6, num_experts_per_tok=2, moe_intermediate_size=48),
    "mixtral": dict(GROUPED, num_local_experts=4, num_experts_per_tok=2),
    "gemma2": dict(GROUPED, head_dim=16),
    "gemma3_text": dict(GROUPED, head_dim=16),
    "phi3": dict(GROUPED, pad_token_id=0),
    "deepseek_v3": dict(SMALL, intermediate_size=96, num_key_value_heads=4, q_lora_rank=24, kv_lora_rank=16,
                        qk_rope_head_dim=8, qk_nope_head_dim=16, v_head_dim=12, n_routed_experts=8, n_group=2, topk_group=1,
                        num_experts_per_tok=2, moe_intermediate_size=32, first_k_dense_replace=1),
    "gpt_oss": dict(GROUPED, head_dim=16, num_local_experts=4, num_experts_per_tok=2),
    "olmo2": GROUPED,
}


def tensors_of(folder):
    """Values and bytes of all tensors in the folder's files."""
    values = size = 0
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".safetensors"):
            continue
        with safe_open(os.path.join(folder, name), "pt") as file:
            for key in file.keys():
                tensor = file.get_tensor(key)
                values += tensor.numel()
                size += tensor.numel() * tensor.element_size()
    return values, size


def check(llmprof, name, keys, scratch):
    folder = os.path.join(scratch, name.replace(", ", "-"))
    config = AutoConfig.for_model(name.split(",")[0], **keys)
    model = AutoModelForCausalLM.from_config(config).to(torch.bfloat16)
    model.save_pretrained(folder, max_shard_size="100KB")
    shards = sum(name.endswith(".safetensors") for name in os.listdir(folder))
    values, size = tensors_of(folder)
    done = subprocess.run([llmprof, "model", folder, "--json"], capture_output=True, text=True)
    if done.returncode != 0:
        return f"FAIL {name}: {done.stderr.strip()}"
    report = json.loads(done.stdout)
    # What is said of a device, not of the files: such small weights fit its cache.
    caveats = [c for c in report["caveats"] if "no peak" not in c and "last-level cache" not in c]
    got = (report["parameters"]["total"], report["memory"]["weights_bytes"])
    verdict = "PASS" if got == (values, size) and not caveats else "FAIL"
    return (f"{verdict} {name}: {shards} files, {values} values, {size} bytes; llmprof: {got[0]} values, {got[1]:.0f} bytes"
            + "".join(f"\n     {c}" for c in caveats))


def main():
    lines = []
    with tempfile.TemporaryDirectory() as scratch:
        for name, keys in MODELS.items():
            lines.append(check(os.path.realpath(sys.argv[1]), name, keys, scratch))
            print(lines[-1], flush=True)
    failed = sum(line.startswith("FAIL") for line in lines)
    print(f"{len(lines) - failed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
