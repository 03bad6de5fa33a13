#!/usr/bin/env python3
"""torch.nn.functional.conv2d and torch.nn.LSTM: the time of their kernels by CUPTI, cold cache, random data.

  bench_dnn_peer.py --shapes                  prints the problems, as `llmprof bench` names them
  bench_dnn_peer.py > torch.csv               times them: key, median us with torch's own choice of algorithm, and with
                                              its search for the fastest (torch.backends.cudnn.benchmark)
  bench_dnn_peer.py --ours build/bin/llmprof > ours.csv
                                              times the same problems by `llmprof bench`
  bench_dnn_peer.py --compare ours.csv torch.csv
                                              our time over the better of theirs, each problem
"""
import csv
import pathlib
import statistics
import subprocess
import sys
import tempfile

from torch_times import median_times

CONVOLUTIONS = [  # batch, channels, out_channels, height, width, kernel, stride, padding: layers of ResNet-50
    (1, 64, 64, 56, 56, 3, 1, 1), (32, 64, 64, 56, 56, 3, 1, 1), (32, 256, 64, 56, 56, 1, 1, 0),
    (32, 3, 64, 224, 224, 7, 2, 3), (32, 512, 512, 7, 7, 3, 1, 1)]
LSTMS = [(1, 128, 512, 512, 1), (64, 128, 512, 512, 1), (64, 64, 1024, 1024, 2)]  # batch, seq, in, hidden, layers
CONVOLUTION_AXES = ("batch", "channels", "out_channels", "height", "width", "kernel", "stride", "padding")
LSTM_AXES = ("batch", "seq", "in", "hidden", "layers")
TYPES = ("bfloat16", "float16", "tf32", "float32")
CALLS = 10
FLUSH_BYTES = 256 << 20


def problems():
    for op, axes, sizes in (("conv2d", CONVOLUTION_AXES, CONVOLUTIONS), ("lstm", LSTM_AXES, LSTMS)):
        for kind in TYPES:
            for values in sizes:
                yield op, kind, dict(zip(axes, values))


def key(op, kind, sizes):
    return f"{op} {kind} " + " ".join(f"{name}={value}" for name, value in sizes.items())


def call_of(torch, op, kind, s):
    dtype = torch.float32 if kind == "tf32" else getattr(torch, kind)
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = kind == "tf32"
    if op == "lstm":
        module = torch.nn.LSTM(s["in"], s["hidden"], s["layers"], device="cuda", dtype=dtype)
        module.flatten_parameters()
        x = torch.randn(s["seq"], s["batch"], s["in"], device="cuda", dtype=dtype)
        state = torch.randn(s["layers"], s["batch"], s["hidden"], device="cuda", dtype=dtype)
        return lambda: module(x, (state, state))
    layout = torch.channels_last if kind in ("bfloat16", "float16") else torch.contiguous_format
    x = torch.randn(s["batch"], s["channels"], s["height"], s["width"], device="cuda", dtype=dtype)
    w = torch.randn(s["out_channels"], s["channels"], s["kernel"], s["kernel"], device="cuda", dtype=dtype)
    x, w = x.to(memory_format=layout), w.to(memory_format=layout)
    return lambda: torch.nn.functional.conv2d(x, w, stride=s["stride"], padding=s["padding"])


def measure():
    import torch
    flush = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda")
    print("key,us,searched_us,kernels")
    with torch.no_grad():
        for op, kind, sizes in problems():
            call = call_of(torch, op, kind, sizes)
            torch.backends.cudnn.benchmark = False
            [(plain, kernels)] = median_times(torch, [call], flush, CALLS)
            searched = plain
            if op == "conv2d":
                torch.backends.cudnn.benchmark = True
                [(searched, _)] = median_times(torch, [call], flush, CALLS)
            print(f"{key(op, kind, sizes)},{plain:.3f},{searched:.3f},{kernels}", flush=True)


def ours(program):
    """A run of `llmprof bench` for each problem. One that cannot be measured is left out, with its reason."""
    print("key,us")
    with tempfile.TemporaryDirectory() as folder:
        table = pathlib.Path(folder, "points.csv")
        for op, kind, sizes in problems():
            axes = [word for name, value in sizes.items() for word in ("--" + name.replace("_", "-"), str(value))]
            subprocess.run([program, "bench", op, "--dtype", kind, *axes, "--limit", "1", "--csv", table, "--no-peaks",
                            "--output", pathlib.Path(folder, "run"), "--force"], check=True, stdout=subprocess.DEVNULL)
            with open(table) as file:
                row = next(csv.DictReader(file))
            if row["status"] == "measured":
                print(f"{key(op, kind, sizes)},{float(row['median_ns']) / 1000:.3f}", flush=True)
            else:
                print(f"{key(op, kind, sizes)}: {row['reason']}", file=sys.stderr)


def read(path):
    with open(path) as file:
        return {row["key"]: row for row in csv.DictReader(file)}


def compare(ours_path, theirs_path):
    mine, theirs = read(ours_path), read(theirs_path)
    both = [name for name in theirs if name in mine]
    if not both:
        sys.exit("the two have no problem in common")
    ratios = {"conv2d": [], "lstm": []}
    print(f'{"ours":>9} {"torch":>9} {"searched":>9} {"ratio":>6}')
    for name in both:
        us = float(mine[name]["us"])
        plain, searched = float(theirs[name]["us"]), float(theirs[name]["searched_us"])
        ratio = us / min(plain, searched)
        ratios[name.split()[0]].append(ratio)
        print(f"{us:9.2f} {plain:9.2f} {searched:9.2f} {ratio:6.3f}  {name}")
    for op, values in ratios.items():
        if values:
            print(f"{op}: our time over torch's, median {statistics.median(values):.3f}, most {max(values):.3f}")


if __name__ == "__main__":
    if sys.argv[1:] == ["--shapes"]:
        print("\n".join(key(*problem) for problem in problems()))
    elif sys.argv[1:2] == ["--ours"] and len(sys.argv) == 3:
        ours(sys.argv[2])
    elif sys.argv[1:2] == ["--compare"] and len(sys.argv) == 4:
        compare(*sys.argv[2:])
    elif len(sys.argv) == 1:
        measure()
    else:
        sys.exit(__doc__)
