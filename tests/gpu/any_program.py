"""Programs that llmprof was not made for, each of which says what it did: any_program.py KIND, a function of this file.
lora: a Llama with low-rank adapters, of which only those are trained. t5: encoder and decoder, `generate`. vision: an image and a prompt,
`generate` of a vision-language model. assisted: speculative decoding with a small model. train: GPT-2 with gradient accumulation and an
evaluation now and then. recompute: a Llama whose layers are computed again in the backward pass. moe: a Mixtral is trained. bert: an
encoder is trained to classify. whisper: `generate` of speech. dit: a diffusion transformer samples. Weights are random; transformers' own
code, but for dit's."""
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


def train_steps(run_step, count, warm_up=4):
    """Runs and times whole steps."""
    times = []
    for step in range(count):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        run_step(step)
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    said.update(steps=len(times), median_ms=round(statistics.median(times[warm_up:]) * 1e3, 2))


def train_language_model(model, count):
    """Steps of 4 x 1024 tokens; what asks for gradients is trained."""
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-4)

    def step(_):
        tokens = torch.randint(0, 32000, (4, 1024), device="cuda")
        model(input_ids=tokens, labels=tokens).loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    model.train()
    train_steps(step, count)
    said.update(tokens_per_step=4 * 1024, parameters=sum(p.numel() for p in model.parameters()))


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
    train_language_model(model, 24)
    said["trained"] = sum(p.numel() for p in model.parameters() if p.requires_grad)


def train():
    from transformers import GPT2Config, GPT2LMHeadModel
    with torch.device("cuda"):
        model = GPT2LMHeadModel(GPT2Config(n_layer=6, n_embd=768, n_head=12)).to(torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def step(number):
        for _ in range(2):
            tokens = torch.randint(0, 50257, (4, 512), device="cuda")
            (model(input_ids=tokens, labels=tokens).loss / 2).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if number % 6 == 5:
            model.eval()
            with torch.no_grad():
                for _ in range(2):
                    model(input_ids=tokens, labels=tokens)
            model.train()

    model.train()
    train_steps(step, 18)
    said.update(accumulation=2, evaluations=3, passes_per_evaluation=2, tokens_per_step=2 * 4 * 512)


def recompute():
    from transformers import LlamaConfig, LlamaForCausalLM
    with torch.device("cuda"):
        model = LlamaForCausalLM(LlamaConfig(hidden_size=2048, intermediate_size=5632, num_hidden_layers=8, vocab_size=32000,
                                             num_attention_heads=16, num_key_value_heads=8)).to(torch.bfloat16)
    model.gradient_checkpointing_enable()
    train_language_model(model, 16)


def moe():
    from transformers import MixtralConfig, MixtralForCausalLM
    with torch.device("cuda"):
        model = MixtralForCausalLM(MixtralConfig(hidden_size=1024, intermediate_size=3584, num_hidden_layers=6, vocab_size=32000,
                                                 num_attention_heads=16, num_key_value_heads=4, num_local_experts=8,
                                                 num_experts_per_tok=2)).to(torch.bfloat16)
    train_language_model(model, 16)


def bert():
    from transformers import BertConfig, BertForSequenceClassification
    with torch.device("cuda"):
        model = BertForSequenceClassification(BertConfig(num_hidden_layers=8)).to(torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def step(_):
        tokens, labels = torch.randint(0, 30000, (32, 128), device="cuda"), torch.randint(0, 2, (32,), device="cuda")
        model(input_ids=tokens, labels=labels).loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    model.train()
    train_steps(step, 20)
    said.update(tokens_per_step=32 * 128)


def whisper():
    from transformers import WhisperConfig, WhisperForConditionalGeneration
    with torch.device("cuda"):
        model = WhisperForConditionalGeneration(WhisperConfig(d_model=768, encoder_layers=12, decoder_layers=12, encoder_attention_heads=12,
                                                              decoder_attention_heads=12, encoder_ffn_dim=3072, decoder_ffn_dim=3072,
                                                              )).to(torch.bfloat16).eval()
    decoder, encoder = [], []
    timed_passes(model.model.decoder, decoder), timed_passes(model.model.encoder, encoder)
    speech = torch.randn(2, 80, 3000, device="cuda", dtype=torch.bfloat16)
    for new in (4, 48, 48):
        model.generate(input_features=speech, max_new_tokens=new, min_new_tokens=new, do_sample=False, language=None, task=None)
        torch.cuda.synchronize()
        said["warm_up_decoder_passes"] = said.get("warm_up_decoder_passes", len(decoder))
    tell("decoder", decoder, said["warm_up_decoder_passes"])
    said["encoder"] = {"passes": len(encoder)}


def dit():
    class Block(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width, elementwise_affine=False), nn.LayerNorm(width, elementwise_affine=False)
            self.qkv, self.proj, self.heads = nn.Linear(width, 3 * width), nn.Linear(width, width), heads
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width))
            self.modulation = nn.Sequential(nn.SiLU(), nn.Linear(width, 6 * width))

        def forward(self, x, condition):
            shift1, scale1, gate1, shift2, scale2, gate2 = self.modulation(condition).unsqueeze(1).chunk(6, dim=-1)
            batch, length, width = x.shape
            q, k, v = self.qkv(self.norm1(x) * (1 + scale1) + shift1).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
            mixed = nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(batch, length, width)
            x = x + gate1 * self.proj(mixed)
            return x + gate2 * self.mlp(self.norm2(x) * (1 + scale2) + shift2)

    class Transformer(nn.Module):
        def __init__(self, width=1152, depth=16, heads=16, patch=2, channels=4):
            super().__init__()
            self.embed, self.time = nn.Conv2d(channels, width, patch, patch), nn.Sequential(nn.Linear(256, width), nn.SiLU(), nn.Linear(width, width))
            self.blocks = nn.ModuleList(Block(width, heads) for _ in range(depth))
            self.head = nn.Linear(width, patch * patch * channels)

        def forward(self, image, moment):
            x = self.embed(image).flatten(2).transpose(1, 2)
            condition = self.time(moment)
            for block in self.blocks:
                x = block(x, condition)
            x = self.head(x)
            side = int(x.shape[1] ** 0.5)
            return nn.functional.pixel_shuffle(x.transpose(1, 2).reshape(x.shape[0], -1, side, side), 2)

    with torch.device("cuda"):
        model = Transformer().to(torch.bfloat16).eval()
    image = torch.randn(4, 4, 64, 64, device="cuda", dtype=torch.bfloat16)

    def step(number):
        nonlocal image
        moment = torch.full((4, 256), number / 50, device="cuda", dtype=torch.bfloat16)
        image = image - 0.02 * model(image, moment)

    train_steps(step, 50)
    said.update(tokens_per_step=4 * 1024, training=False)


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


TRAINED = {"lora": lora, "train": train, "recompute": recompute, "moe": moe, "bert": bert}
with torch.enable_grad() if KIND in TRAINED else torch.no_grad():
    (TRAINED | {"t5": t5, "vision": vision, "assisted": assisted, "whisper": whisper, "dit": dit})[KIND]()
print(json.dumps(said))
