"""Generates tokens with transformers from a small Llama with random weights."""
import time

import torch
import transformers

import figures

PROMPT, NEW = 24, 40


def main():
    torch.manual_seed(0)
    torch.set_num_threads(2)
    config = transformers.LlamaConfig(
        hidden_size=256, intermediate_size=704, num_hidden_layers=4, num_attention_heads=8, num_key_value_heads=2,
        vocab_size=4000, max_position_embeddings=256, bos_token_id=1, eos_token_id=2, pad_token_id=0)
    model = transformers.LlamaForCausalLM(config).eval()
    prompt = torch.randint(3, config.vocab_size, (1, PROMPT))
    passes = []
    model.register_forward_pre_hook(lambda *_: passes.append([time.perf_counter(), None]))
    model.register_forward_hook(lambda *_: passes[-1].__setitem__(1, time.perf_counter()))
    began = time.perf_counter()
    tokens = model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=NEW, min_new_tokens=NEW,
                            do_sample=False)
    elapsed = time.perf_counter() - began
    begins = [begin for begin, _ in passes]
    figures.show(
        tokens=tokens[0, PROMPT:].tolist(), prompt=PROMPT, passes=len(passes), elapsed_s=elapsed,
        prefill_s=passes[0][1] - passes[0][0], decode_s=passes[-1][1] - passes[1][0],
        token_s=[after - before for before, after in zip(begins[1:], begins[2:])], head_size=config.head_dim,
        linears=[[name, layer.in_features, layer.out_features] for name, layer in model.named_modules()
                 if isinstance(layer, torch.nn.Linear)],
        modules=[name for name, _ in model.named_modules()], parameters=sum(p.numel() for p in model.parameters()))


if __name__ == "__main__":
    main()
