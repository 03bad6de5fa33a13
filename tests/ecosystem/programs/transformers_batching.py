"""Serves requests with transformers' continuous batching: a small Llama with random weights, a KV cache that is too small for all
of them at once, and a beginning that some of them share."""
import time

import torch
import transformers

import figures

NEW = 24


def main():
    torch.manual_seed(0)
    torch.set_num_threads(2)
    config = transformers.LlamaConfig(
        hidden_size=128, intermediate_size=352, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        vocab_size=1000, max_position_embeddings=512)
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="sdpa").eval()
    computed = []
    model.register_forward_pre_hook(lambda module, words, named: computed.append(named["input_ids"].shape[1]), with_kwargs=True)
    generator = torch.Generator().manual_seed(1)

    def tokens(count):
        return torch.randint(10, 1000, (count,), generator=generator).tolist()
    shared = tokens(64)
    prompts = [shared + tokens(9 * i) if i % 3 == 2 else tokens(10 + 17 * i % 120) for i in range(12)]
    began = time.perf_counter()
    done = model.generate_batch(
        inputs=prompts, progress_bar=False,
        generation_config=transformers.GenerationConfig(max_new_tokens=NEW, do_sample=False, eos_token_id=7, pad_token_id=0),
        continuous_batching_config=transformers.ContinuousBatchingConfig(num_blocks=36, page_size=16, max_batch_tokens=128))
    figures.show(
        elapsed_s=time.perf_counter() - began, passes=len(computed), computed=sum(computed),
        parameters=sum(p.numel() for p in model.parameters()),
        prompts={name: len(each.prompt_ids) for name, each in done.items()},
        tokens={name: each.generated_tokens for name, each in sorted(done.items())})


if __name__ == "__main__":
    main()
