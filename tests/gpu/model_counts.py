"""Counts what transformers itself builds from the configs of libs/model/zoo: the independent check of our formulas.

Needs PyTorch and transformers, no GPU and no network: models are built on meta tensors, which have shapes and no
memory. Writes one JSON line a model: parameters (tied ones once), persistent buffers (tensors of the checkpoint that
are no parameters), sums by tensor name, and the FLOPs that torch.utils.flop_counter sees in a forward of 1x128 tokens.
Usage: tests/gpu/model_counts.py [ZOO_FOLDER] [--only NAME,NAME…] [--no-flops] > counts.jsonl
"""
import argparse
import json
import pathlib
import re
import sys
import time
import traceback

TOKENS = 128
# Served by another class of transformers where it does not know the hub's own name for it.
SAME_AS = {"kimi_k2": "deepseek_v3"}


def entries(folder, only):
    for path in sorted(folder.glob("*.json")):
        for entry in json.loads(path.read_text())["models"]:
            if not only or entry["name"] in only:
                yield entry


def build(entry, torch, transformers, **changes):
    """The model on meta tensors, without quantisation: it changes how weights are stored, not how many there are."""
    config = {**entry["config"], **changes}
    config.pop("quantization_config", None)
    model_type = config.pop("model_type")
    config["dtype"] = getattr(torch, config["dtype"])
    try:
        made = transformers.AutoConfig.for_model(model_type, **config)
    except (KeyError, ValueError):
        made = transformers.AutoConfig.for_model(SAME_AS[model_type], **config)
    made.use_cache = False
    with torch.device("meta"):
        return transformers.AutoModelForCausalLM.from_config(made, attn_implementation="eager")


def by_name(tensors):
    """Sizes summed over the layers and experts: {"model.layers.*.mlp.up_proj.weight": n}."""
    sums = {}
    for name, tensor in tensors:
        key = re.sub(r"\.\d+\.", ".*.", name)
        sums[key] = sums.get(key, 0) + tensor.numel()
    return sums


def persistent_buffers(model):
    for prefix, module in model.named_modules():
        for name, buffer in module.named_buffers(recurse=False):
            if name not in module._non_persistent_buffers_set:
                yield f"{prefix}.{name}", buffer


def count(entry, torch, transformers):
    model = build(entry, torch, transformers)
    model.tie_weights()
    parameters = list({id(tensor): (name, tensor) for name, tensor in model.named_parameters()}.values())
    buffers = list(persistent_buffers(model))
    return model, {
        "class": type(model).__name__,
        "parameters": sum(tensor.numel() for _, tensor in parameters),
        "persistent_buffers": sum(tensor.numel() for _, tensor in buffers),
        "by_name": {**by_name(parameters), **by_name(buffers)},
    }


def use_batched_experts(model):
    """One product per token and chosen expert: the only way of running experts that needs no values, just shapes."""
    if hasattr(model, "set_experts_implementation"):
        model.set_experts_implementation("batched_mm")


def masks(model, torch):
    """Ways to say "attend to everything". Without a mask some models look at values to see whether they need one."""
    parameter = next(model.parameters())
    yield "4-d mask", torch.zeros((1, 1, TOKENS, TOKENS), dtype=parameter.dtype, device=parameter.device)
    yield "2-d mask", torch.ones((1, TOKENS), dtype=torch.long, device=parameter.device)
    yield "no mask", None


def flops(model, mask, torch):
    """FLOPs by operator of a forward, and those of them that only make the rotary angles."""
    from torch.utils.flop_counter import FlopCounterMode

    tokens = torch.zeros((1, TOKENS), dtype=torch.long, device=next(model.parameters()).device)
    counter = FlopCounterMode(display=False, depth=None)
    with torch.no_grad(), counter:
        model(input_ids=tokens, attention_mask=mask, use_cache=False)
    counts = counter.get_flop_counts()
    angles = sum(sum(ops.values()) for path, ops in counts.items() if "rotary" in path.split(".")[-1])
    return {
        "total": counter.get_total_flops(),
        "rotary_angles": angles,
        "by_operator": {str(op): value for op, value in counts["Global"].items()},
    }


def with_flops(row, model, torch):
    use_batched_experts(model)
    errors = []
    for kind, mask in masks(model, torch):
        try:
            row["flops_1x128"] = flops(model, mask, torch)
            return
        except Exception as error:  # a model that needs values: say so and go on
            where = traceback.extract_tb(error.__traceback__)
            frames = [f"{pathlib.Path(f.filename).name}:{f.lineno}" for f in where if "transformers" in f.filename][-2:]
            errors.append(f"{kind}: {type(error).__name__}: {error} at {' < '.join(reversed(frames))}"[:300])
    row["flops_error"] = errors


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", default=pathlib.Path(__file__).parents[2] / "libs/model/zoo")
    parser.add_argument("--only", default="")
    parser.add_argument("--no-flops", action="store_true")
    options = parser.parse_args()

    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    print(json.dumps({"torch": torch.__version__, "transformers": transformers.__version__}), flush=True)
    failed = 0
    for entry in entries(pathlib.Path(options.folder), [name for name in options.only.split(",") if name]):
        begin = time.monotonic()
        row = {"name": entry["name"]}
        try:
            model, counted = count(entry, torch, transformers)
            row.update(counted)
            if not options.no_flops:
                with_flops(row, model, torch)
        except Exception as error:
            failed += 1
            row["error"] = f"{type(error).__name__}: {error}"[:500]
            traceback.print_exc(limit=-3, file=sys.stderr)
        row["seconds"] = round(time.monotonic() - begin, 1)
        print(json.dumps(row), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
