"""Programs that llmprof was not made for, each of which says what it did: any_program.py lora|t5|vision|assisted.
lora: a Llama with low-rank adapters, of which only those are trained. t5: encoder and decoder, `generate`. vision: an image and a prompt,
`generate` of a vision-language model. assisted: speculative decoding with a small model. Weights are random; transformers' own code."""
import json
import statistics
import sys
import time

import torch
from torch import nn

KIND = sys.argv[1]
said = {"program": KIND}


def timed_passes(model, passes):
    """Notes every forward pass of `model`: rows of tokens and the wall time from begin to begin."""
    def before(module, args, kwargs):
        tokens = kwargs.get("input_ids", kwargs.get("decoder_input_ids", args[0] if args else None))
        embeds = kwargs.get("inputs_embeds")
        shape = list((tokens if tokens is not None else embeds).shape[:2]) if tokens is not None or embeds is not None else None
        passes.append((time.perf_counter(), shape))
    model.register_forward_pre_hook(before, with_kwargs=True)


def tell(name, passes, warm_up):
    passes = passes[warm_up:]
    gaps = [b[0] - a[0] for a, b in zip(passes, passes[1:])]
    said[name] = {"passes": len(passes), "median_ms": round(statistics.median(gaps) * 1e3, 3) if gaps else None,
                  "shapes": [shape for _, shape in passes[:3]]}


def lora():
    from transformers import LlamaConfig, LlamaForCausalLM

    class Adapted(nn.Module):
        def __init__(self, base, rank=16):
            super().__init__()
            self.base = base
            self.down = nn.Linear(base.in_features, rank, bias=False)
            self.up = nn.Linear(rank, base.out_features, bias=False)

        def forward(self, x):
            return self.base(x) + self.up(self.down(x))

    with torch.device("cuda"):
        model = LlamaForCausalLM(LlamaConfig(hidden_size=2048, intermediate_size=5632, num_hidden_layers=12, vocab_size=32000,
                                             num_attention_heads=16, num_key_value_heads=8)).to(torch.bfloat16)
        for parameter in model.parameters():
            parameter.requires_grad_(False)
        for layer in model.model.layers:
            for name in ("q_proj", "v_proj"):
                setattr(layer.self_attn, name, Adapted(getattr(layer.self_attn, name)).to(torch.bfloat16))
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-4)
    model.train()
    times = []
    for step in range(24):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        tokens = torch.randint(0, 32000, (4, 1024), device="cuda")
        loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    said.update(steps=len(times), median_ms=round(statistics.median(times[4:]) * 1e3, 2), tokens_per_step=4 * 1024,
                trained=sum(p.numel() for p in trained), parameters=sum(p.numel() for p in model.parameters()))


def t5():
    from transformers import T5Config, T5ForConditionalGeneration
    with torch.device("cuda"):
        model = T5ForConditionalGeneration(T5Config(d_model=1024, d_ff=2816, num_layers=12, num_heads=16, d_kv=64,
                                                    feed_forward_proj="gated-gelu", decoder_start_token_id=0)).to(torch.bfloat16).eval()
    decoder, encoder = [], []
    timed_passes(model.decoder, decoder), timed_passes(model.encoder, encoder)
    tokens = torch.randint(0, 32000, (4, 256), device="cuda")
    for new in (4, 64, 64):
        model.generate(tokens, max_new_tokens=new, min_new_tokens=new, do_sample=False)
        torch.cuda.synchronize()
        said["warm_up_decoder_passes"] = said.get("warm_up_decoder_passes", len(decoder))
    tell("decoder", decoder, said["warm_up_decoder_passes"])
    said["encoder"] = {"passes": len(encoder)}


def vision():
    from transformers import Qwen2VLConfig, Qwen2VLForConditionalGeneration
    config = Qwen2VLConfig(text_config=dict(hidden_size=1536, intermediate_size=8960, num_hidden_layers=12, num_attention_heads=12,
                                            num_key_value_heads=2, vocab_size=151936, tie_word_embeddings=True,
                                            rope_scaling={"type": "mrope", "mrope_section": [16, 24, 24]}),
                           vision_config=dict(depth=12, embed_dim=1280, num_heads=16, hidden_size=1536))
    with torch.device("cuda"):
        model = Qwen2VLForConditionalGeneration(config).to(torch.bfloat16).eval()
    passes = []
    timed_passes(model, passes)
    grid = torch.tensor([[1, 32, 32]], device="cuda")  # 1024 patches, merged by fours to 256 tokens
    pixels = torch.randn(1024, 3 * 2 * 14 * 14, device="cuda", dtype=torch.bfloat16)
    prompt = torch.randint(0, 1000, (1, 64), device="cuda")
    image = torch.full((1, 256), config.image_token_id, device="cuda")
    tokens = torch.cat([prompt[:, :8], torch.full((1, 1), config.vision_start_token_id, device="cuda"), image, prompt[:, 8:]], dim=1)
    for new in (4, 48, 48):
        model.generate(input_ids=tokens, attention_mask=torch.ones_like(tokens), pixel_values=pixels, image_grid_thw=grid,
                       mm_token_type_ids=(tokens == config.image_token_id).int(), max_new_tokens=new, min_new_tokens=new, do_sample=False)
        torch.cuda.synchronize()
        said["warm_up_passes"] = said.get("warm_up_passes", len(passes))
    tell("model", passes, said["warm_up_passes"])
    said["prompt_tokens"] = tokens.shape[1]


def assisted():
    from transformers import LlamaConfig, LlamaForCausalLM
    with torch.device("cuda"):
        large = LlamaForCausalLM(LlamaConfig(hidden_size=2048, intermediate_size=5632, num_hidden_layers=16, vocab_size=32000,
                                             num_attention_heads=16, num_key_value_heads=8)).to(torch.bfloat16).eval()
        small = LlamaForCausalLM(LlamaConfig(hidden_size=512, intermediate_size=1408, num_hidden_layers=4, vocab_size=32000,
                                             num_attention_heads=8, num_key_value_heads=8)).to(torch.bfloat16).eval()
    of_large, of_small = [], []
    timed_passes(large, of_large), timed_passes(small, of_small)
    tokens = torch.randint(0, 32000, (1, 128), device="cuda")
    large.generate(tokens, assistant_model=small, max_new_tokens=8, do_sample=False)
    warm_large, warm_small = len(of_large), len(of_small)
    large.generate(tokens, assistant_model=small, max_new_tokens=96, min_new_tokens=96, do_sample=False)
    torch.cuda.synchronize()
    tell("large", of_large, warm_large)
    tell("small", of_small, warm_small)


with torch.no_grad() if KIND != "lora" else torch.enable_grad():
    {"lora": lora, "t5": t5, "vision": vision, "assisted": assisted}[KIND]()
print(json.dumps(said))
