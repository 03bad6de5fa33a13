"""A transformers Llama on the CPU in float32. `make FOLDER` saves one with random weights; `run FOLDER` (or with the folder
in the variable MODEL_FOLDER) loads it from there and generates: 2 sequences of 24 tokens, 12 new ones each."""
import os
import sys

import torch
from transformers import LlamaConfig, LlamaForCausalLM

BATCH, PROMPT, NEW = 2, 24, 12


def make(folder):
    torch.manual_seed(0)
    config = LlamaConfig(hidden_size=512, intermediate_size=1408, num_hidden_layers=6, num_attention_heads=8,
                         num_key_value_heads=4, vocab_size=8000, max_position_embeddings=256, tie_word_embeddings=False,
                         bos_token_id=None, eos_token_id=None, pad_token_id=0)
    LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(folder)


def run(folder):
    torch.manual_seed(0)
    model = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    prompt = torch.randint(0, model.config.vocab_size, (BATCH, PROMPT))
    with torch.no_grad():
        out = model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=NEW, min_new_tokens=NEW,
                             do_sample=False)
    print(tuple(out.shape))


if __name__ == "__main__":
    folder = sys.argv[2] if len(sys.argv) > 2 else os.environ["MODEL_FOLDER"]
    {"make": make, "run": run}[sys.argv[1]](folder)
