"""Two ranks of a small Llama in plain PyTorch: tensor parallel generation, or data parallel training.

two_ranks.py run tp|dp          starts both ranks as processes, as torchrun does; NCCL on cuda:0 where there is a GPU (each rank
                                says that it is a host of its own, as two may then share a GPU), else gloo
two_ranks.py check tp|dp JSON   compares the report (`llmprof report --json`) with values derived by hand
"""
import json
import os
import subprocess
import sys
import time

CONFIG = {"model_type": "llama", "hidden_size": 1024, "num_hidden_layers": 4, "num_attention_heads": 8,
          "num_key_value_heads": 8, "intermediate_size": 2816, "vocab_size": 8192, "torch_dtype": "float32",
          "tie_word_embeddings": False}
RANKS, BATCH, CONTEXT, STEPS = 2, 4, 64, 20
HIDDEN, HEADS, WIDTH, VOCAB = (CONFIG[key] for key in
                               ("hidden_size", "num_attention_heads", "intermediate_size", "vocab_size"))
LAYERS, DIM = CONFIG["num_hidden_layers"], HIDDEN // HEADS


def forward_flops(tokens, context, logits):
    """Of one sequence: products 2mnk, attention over what each token sees, logits of as many positions."""
    weights = 4 * HIDDEN * HIDDEN + 3 * HIDDEN * WIDTH
    pairs = sum(context - tokens + 1 + i for i in range(tokens))
    return LAYERS * (2 * tokens * weights + 4 * HIDDEN * pairs) + logits * 2 * HIDDEN * VOCAB


class Model:
    """Each of `parts` ranks has as many of the heads, of the MLP and of the logits."""

    def __init__(self, torch, device, parts, reduce):
        self.torch, self.reduce, self.heads = torch, reduce, HEADS // parts
        make = lambda out, inner: (torch.randn(out, inner, device=device) * inner ** -0.5).requires_grad_()
        self.embed, self.head = make(VOCAB, HIDDEN), make(VOCAB // parts, HIDDEN)
        self.layers = [{**{name: make(HIDDEN // parts, HIDDEN) for name in "qkv"}, "o": make(HIDDEN, HIDDEN // parts),
                        "gate": make(WIDTH // parts, HIDDEN), "up": make(WIDTH // parts, HIDDEN),
                        "down": make(HIDDEN, WIDTH // parts)} for _ in range(LAYERS)]

    def parameters(self):
        return [self.embed, self.head, *(weight for layer in self.layers for weight in layer.values())]

    def __call__(self, tokens, cache=None):
        linear, torch = self.torch.nn.functional.linear, self.torch
        x = self.embed[tokens]
        split = lambda y: y.view(*y.shape[:2], self.heads, DIM).transpose(1, 2)
        for index, w in enumerate(self.layers):
            h = torch.nn.functional.rms_norm(x, (HIDDEN,))
            q, k, v = (split(linear(h, w[name])) for name in "qkv")
            if cache is not None:
                k, v = (torch.cat(pair, 2) for pair in zip(cache[index], (k, v)))
                cache[index] = k, v
            mixed = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=cache is None)
            x = x + self.reduce(linear(mixed.transpose(1, 2).flatten(2), w["o"]))
            h = torch.nn.functional.rms_norm(x, (HIDDEN,))
            x = x + self.reduce(linear(torch.nn.functional.silu(linear(h, w["gate"])) * linear(h, w["up"]), w["down"]))
        return linear(torch.nn.functional.rms_norm(x, (HIDDEN,)), self.head)


def generate(torch, dist, device, llmprof):
    def reduce(part):
        dist.all_reduce(part)
        return part
    with torch.no_grad():
        model = Model(torch, device, RANKS, reduce)
        empty = lambda: torch.zeros(BATCH, HEADS // RANKS, CONTEXT, DIM, device=device)
        cache = [(empty(), empty()) for _ in range(LAYERS)]
        tokens = torch.zeros(BATCH, 1, dtype=torch.long, device=device)
        for step in range(STEPS):
            with llmprof.step("decode", batch=BATCH, tokens=1, context=CONTEXT + 1 + step):
                part = model(tokens, cache)[:, -1]
                parts = [torch.empty_like(part) for _ in range(RANKS)]
                dist.all_gather(parts, part.contiguous())
                tokens = torch.cat(parts, 1).argmax(1, keepdim=True)


def train(torch, dist, device, llmprof):
    model = Model(torch, device, 1, lambda whole: whole)
    tokens = torch.randint(0, VOCAB, (BATCH, CONTEXT), device=device)
    for _ in range(STEPS):
        with llmprof.step("forward", batch=BATCH, tokens=CONTEXT, context=CONTEXT):
            loss = torch.nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
        with llmprof.step("backward", batch=BATCH, tokens=CONTEXT, context=CONTEXT):
            loss.backward()
            for weight in model.parameters():
                dist.all_reduce(weight.grad)
        with llmprof.step("optimizer"), torch.no_grad():
            for weight in model.parameters():
                weight -= 1e-4 / RANKS * weight.grad
                weight.grad = None


def be_rank(kind):
    import torch
    import torch.distributed as dist
    import llmprof
    on_gpu = torch.cuda.is_available()
    device = torch.device("cuda:0" if on_gpu else "cpu")
    torch.manual_seed(0)
    torch.set_num_threads(1)
    dist.init_process_group("nccl" if on_gpu else "gloo", rank=int(os.environ["RANK"]), world_size=RANKS)
    dist.all_reduce(torch.zeros(1, device=device))  # connects
    llmprof.model(CONFIG)
    if os.environ.get("SAY_GROUPS"):
        llmprof.parallel(f"{kind}={RANKS}")
    begin = time.perf_counter()
    (generate if kind == "tp" else train)(torch, dist, device, llmprof)
    if on_gpu:
        torch.cuda.synchronize()
    seconds = time.perf_counter() - begin
    tokens = BATCH * STEPS if kind == "tp" else RANKS * BATCH * CONTEXT * STEPS
    if dist.get_rank() == 0:
        print(f"{kind}: {tokens / seconds:.1f} tokens/s by its own clock, the loop took {seconds:.3f} s", flush=True)
    dist.destroy_process_group()


def start(kind):
    common = {"WORLD_SIZE": str(RANKS), "LOCAL_WORLD_SIZE": str(RANKS), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29517",
              "NCCL_SOCKET_IFNAME": "lo", "NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1", "NCCL_IB_DISABLE": "1"}
    ranks = [subprocess.Popen([sys.executable, os.path.abspath(__file__), "rank", kind],
                              env={**os.environ, **common, "RANK": str(rank), "LOCAL_RANK": str(rank),
                                   "NCCL_HOSTID": f"host-{rank}"}) for rank in range(RANKS)]
    return max(abs(rank.wait()) for rank in ranks)


def check(kind, report):
    failures = []

    def expect(what, got, wanted, tolerance=0.0):
        fine = got == wanted if tolerance == 0 else got is not None and abs(got - wanted) <= tolerance * abs(wanted)
        print(f"{'PASS' if fine else 'FAIL'} {what}: {got}, by hand {wanted}")
        failures.extend([] if fine else [what])

    job, stages = report["job"], {stage["name"]: stage for stage in report["stages"]}
    copies = 1 if kind == "tp" else RANKS
    stage = stages["decode" if kind == "tp" else "forward"]
    expect("ranks", [rank["rank"] for rank in job["ranks"]], [0, 1])
    expect("the model is divided", (job["known"], job["tensor"], job["data"]), (True, RANKS // copies, copies))
    expect("devices whose peaks count", report["peaks_together"]["devices"], 1)
    expect("steps of both ranks", stage["steps"], RANKS * STEPS)
    if kind == "tp":
        flops = BATCH * sum(forward_flops(1, CONTEXT + 1 + step, 1) for step in range(STEPS))
        tokens = BATCH * STEPS
    else:
        flops = RANKS * STEPS * BATCH * forward_flops(CONTEXT, CONTEXT, CONTEXT)
        tokens = RANKS * BATCH * CONTEXT * STEPS
    expect("FLOPs of the job", stage["flops"], flops, 1e-9)
    expect("tokens of the job", stage["tokens"], tokens)
    seen = stage["time_ns"] * 1e-9  # rates are at the pace of the steps after the warm-up
    if stage["warm_up_steps"] > 0:
        others = stage["steps"] - stage["warm_up_steps"]
        seen = (stage["time_ns"] - stage["warm_up_ns"] / stage["ranks_at_once"]) * 1e-9 * stage["steps"] / others
    expect("tokens/s of the job", stage["tokens_per_s"], tokens / seen, 1e-6)
    if report["peaks_together"]["flops"]:
        expect("MFU", stage["mfu"], flops / seen / report["peaks_together"]["flops"], 1e-6)
    products = [op for op in report["operators"] if op["stage"] == stage["name"] and op["name"].endswith("down_proj")]
    for op in products[:1]:  # matched by the sizes of the parts
        rows = BATCH if kind == "tp" else BATCH * CONTEXT
        expect("FLOPs of down_proj", op["flops"], copies * STEPS * LAYERS * 2 * rows * HIDDEN * WIDTH, 1e-9)
    print("energy:", [(each["stage"], each["joules_per_token"]) for each in (report["telemetry"] or {}).get("stages", [])])
    return 1 if failures else 0


if __name__ == "__main__":
    verb, kind = sys.argv[1], sys.argv[2]
    if verb == "rank":
        be_rank(kind)
    elif verb == "run":
        sys.exit(start(kind))
    else:
        with open(sys.argv[3]) as file:
            sys.exit(check(kind, json.load(file)))
