#!/usr/bin/env python3
"""The figures of `llmprof bench` on a GPU, beside its peers on the same GPU in the same minutes.

usage: bench_suite.py BIN OUT [PART]…   (BIN: folder of llmprof; OUT: where CSV files and a summary go; needs PyTorch)

  gemm       60 shapes of LLMs against torch.matmul, both by CUPTI: our time over theirs
  attention  prompts and decode steps against torch's scaled_dot_product_attention
  repeat     one sweep twice: by how much the medians differ
  ncu        kernels of 2 to 5 us: our median against ncu's gpu__time_duration
  public     public figures (public_gemm_figures.csv) beside ours
"""
import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
REPEATED = [["gemm", "linear", "--m", "1,64,1024", "--seq", "1,64", "--n", "4096", "--k", "4096"],
            ["rmsnorm", "silu_mul", "softmax", "residual_add", "rope", "kv_write", "--seq", "1,64,2048"],
            ["attention_decode", "--batch", "1,16", "--context", "1024,8192"],
            ["attention_prefill", "--seq", "512,4096"]]
SHORT = {"rmsnorm": [], "residual_add": [], "silu_mul": [], "gelu": [], "rope": []}  # one token each


def peer(script, *arguments, **options):
    return subprocess.run([sys.executable, os.path.join(HERE, script), *arguments], text=True, **options)


class Suite:
    def __init__(self, binary, out):
        self.llmprof, self.out = os.path.join(os.path.abspath(binary), "llmprof"), out
        self.scratch = tempfile.TemporaryDirectory()
        self.runs = 0

    def bench(self, *arguments, prefix=()):
        self.runs += 1
        run = os.path.join(self.scratch.name, f"run{self.runs}")
        done = subprocess.run([*prefix, self.llmprof, "bench", *arguments, "--device", "cuda", "-o", run, "--json"],
                              text=True, capture_output=True)
        if done.returncode != 0:
            sys.exit(f"llmprof bench {' '.join(arguments)}: {done.stderr[-2000:]}")
        return json.loads(done.stdout)["points"] if not prefix else done.stdout

    def write(self, name, header, rows):
        path = os.path.join(self.out, name)
        with open(path, "w", newline="") as file:
            csv.writer(file).writerows([header, *rows])
        return path

    def gemm(self):
        shapes = [row.split(",") for row in peer("bench_gemm_peer.py", "--shapes", capture_output=True).stdout.split()[1:]]
        by_weights = {}
        for _, _, m, n, k in shapes:
            by_weights.setdefault((n, k), []).append(m)
        with open(os.path.join(self.out, "gemm_torch.csv"), "w") as file:
            peer("bench_gemm_peer.py", stdout=file, check=True)
        rows = []
        for (n, k), ms in by_weights.items():
            for p in self.bench("gemm", "--dtype", "bf16", "--m", ",".join(ms), "--n", n, "--k", k, "--no-graph"):
                rows.append(["gemm", "bfloat16", *(p["axes"][a] for a in "mnk"), p["time"]["median_ns"] / 1000])
        path = self.write("gemm_ours.csv", ["op", "type", "m", "n", "k", "us"], rows)
        peer("bench_gemm_peer.py", "--compare", path, os.path.join(self.out, "gemm_torch.csv"))

    def attention(self):
        with open(os.path.join(self.out, "attention_torch.csv"), "w") as file:
            peer("bench_attention_peer.py", "--cold", stdout=file, check=True)
        rows = []
        with open(os.path.join(self.out, "attention_torch.csv")) as file:
            problems = list(csv.DictReader(line for line in file if not line.startswith("#")))
        for row in problems:
            tokens = "--seq" if row["op"] == "attention_prefill" else "--context"
            axes = ["--batch", row["batch"], tokens, row["tokens"], "--heads", row["heads"], "--kv-heads",
                    row["kv_heads"], "--head-dim", row["head_dim"]]
            for p in self.bench(row["op"], "--dtype", row["type"], *axes, "--no-graph"):
                rows.append([*(row[k] for k in ("op", "type", "batch", "tokens", "heads", "kv_heads", "head_dim")),
                             p["time"]["median_ns"] / 1000])
        path = self.write("attention_ours.csv",
                          ["op", "type", "batch", "tokens", "heads", "kv_heads", "head_dim", "us"], rows)
        peer("bench_attention_peer.py", "--compare", path, os.path.join(self.out, "attention_torch.csv"))

    def repeat(self):
        medians = []
        for _ in range(2):
            points = [p for sweep in REPEATED for p in self.bench(*sweep, "--no-graph", "--dtype", "bf16")]
            medians.append({(p["op"], str(p["axes"])): p["time"]["median_ns"] for p in points})
        differences = sorted((abs(medians[1][key] / medians[0][key] - 1), key) for key in medians[0])
        values = [d for d, _ in differences]
        print(f"repeat: {len(values)} points, the second run's median differs by {statistics.median(values):.2%} "
              f"(median), {values[int(0.9 * (len(values) - 1))]:.2%} (p90), {values[-1]:.2%} (most: {differences[-1][1]})")

    def ncu(self):
        rows = []
        for op, axes in SHORT.items():
            [ours] = self.bench(op, *axes, "--seq", "1", "--dtype", "bf16", "--no-graph")
            kernel = ours["method"].split()[1].rstrip(",")
            text = self.bench(op, *axes, "--seq", "1", "--dtype", "bf16", "--no-graph", "--no-check", "--limit", "1",
                              prefix=("ncu", "--clock-control", "none", "--metrics", "gpu__time_duration.sum", "--csv",
                                      "--kernel-name", kernel, "--launch-skip", "5", "--launch-count", "15"))
            lines = [line for line in text.splitlines() if line.startswith('"')]
            times = [float(row["Metric Value"]) for row in csv.DictReader(lines)
                     if row.get("Metric Name") == "gpu__time_duration.sum"]
            if times:
                rows.append([op, kernel, ours["time"]["median_ns"], statistics.median(times)])
        self.write("ncu.csv", ["op", "kernel", "ours_ns", "ncu_ns"], rows)
        for op, kernel, mine, theirs in rows:
            print(f"ncu: {op:14} {mine:7.0f} ns, ncu {theirs:7.0f} ns, {mine - theirs:+.0f} ns ({mine / theirs - 1:+.1%})")

    def public(self):
        with open(os.path.join(HERE, "public_gemm_figures.csv")) as file:
            figures = list(csv.DictReader(line for line in file if not line.startswith("#")))
        rows = []
        for f in figures:
            [p] = self.bench("gemm", "--dtype", f["type"], "--m", f["m"], "--n", f["n"], "--k", f["k"], "--no-graph")
            mine = p["flops_per_s"] / 1e12
            rows.append([f["type"], f["m"], f["n"], f["k"], f["tflops"], f["source"], f"{mine:.1f}"])
            print(f"public: {f['type']} {f['m']}x{f['n']}x{f['k']}: {f['tflops']} TFLOP/s ({f['source']}), ours {mine:.1f}")
        self.write("public.csv", ["type", "m", "n", "k", "tflops", "source", "ours_tflops"], rows)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    suite = Suite(sys.argv[1], sys.argv[2])
    os.makedirs(suite.out, exist_ok=True)
    for part in sys.argv[3:] or ("gemm", "attention", "repeat", "ncu", "public"):
        print(f"# {part}", flush=True)
        getattr(suite, part)()
        sys.stdout.flush()


main()
