#!/usr/bin/env python3
"""On a machine with an NVIDIA GPU and PyTorch: the shapes that libllmprof_blas.so notes of torch's matrix products.

gemm_shapes.py run OUT.npy        does the products, saves their results, prints the cost of a small one
gemm_shapes.py jax OUT.npy        the same for a few products of JAX
gemm_shapes.py check DUMP KIND    compares the records of a log (text of collect_dump_log) with what was called (torch, jax)

tests/gpu/gemm_shapes.sh runs all of it.
"""
import re
import sys
import time

M, N, K, B = 96, 160, 224, 6  # all different, and multiples of 16 as float8 wants them

# name, sizes (m, n, k, batch) in row-major order, types of A and C, compute type, epilogue, scaling; None: any
BF16 = "bfloat16"
TORCH = [
    ("mm float32", (M, N, K, 1), "float32", "float32", "float32", None, None),
    ("mm tf32", (M, N, K, 1), "float32", "float32", "tf32", None, None),
    ("mm float64", (M, N, K, 1), "float64", "float64", "float64", None, None),
    ("mm bfloat16", (M, N, K, 1), BF16, BF16, "float32", None, None),
    ("mm float16", (M, N, K, 1), "float16", "float16", "float32", None, None),
    ("mm complex64", (M, N, K, 1), "complex64", "complex64", None, None, None),
    ("mm transposed", (M, N, K, 1), BF16, BF16, "float32", None, None),
    ("bmm", (M, N, K, B), BF16, BF16, "float32", None, None),
    ("baddbmm float32", (M, N, K, B), "float32", "float32", "float32", None, None),
    ("linear with bias", (M, N, K, 1), BF16, BF16, "float32", "bias", None),
    ("addmm with gelu", (M, N, K, 1), BF16, BF16, "float32", "gelu_bias", None),
    ("einsum", (M, N, K, B), BF16, BF16, "float32", None, None),
    ("scaled_mm", (M, N, K, 1), "float8_e4m3", BF16, "float32", None, "tensor"),
    ("scaled_mm by row", (M, N, K, 1), "float8_e4m3", BF16, "float32", None, "outer_vec_32f"),
    ("int_mm", (M, N, K, 1), "int8", "int32", "int32", None, None),
    ("mm in a graph", (M, N, K, 1), BF16, BF16, "float32", None, None),
]


def products():
    """Pairs of a name and a function; each calls cuBLAS once."""
    import torch
    torch.manual_seed(1)

    def matrix(*size, dtype=torch.float32):
        return torch.randn(*size, device="cuda").to(dtype)

    a, b = matrix(M, K), matrix(K, N)
    a3, b3, c3 = matrix(B, M, K), matrix(B, K, N), matrix(B, M, N)
    bias = matrix(N, dtype=torch.bfloat16)
    half, brain = torch.float16, torch.bfloat16
    a8, b8 = a.to(torch.float8_e4m3fn), b.t().contiguous().to(torch.float8_e4m3fn).t()
    one = torch.ones((), device="cuda")
    rows, columns = torch.ones(M, 1, device="cuda"), torch.ones(1, N, device="cuda")
    linear = torch.nn.Linear(K, N, device="cuda", dtype=brain)
    integers = torch.randint(-9, 9, (M, K), device="cuda", dtype=torch.int8), torch.randint(
        -9, 9, (N, K), device="cuda", dtype=torch.int8).t()

    def tf32():
        torch.backends.cuda.matmul.allow_tf32 = True
        result = a @ b
        torch.backends.cuda.matmul.allow_tf32 = False
        return result

    def in_graph():
        x, y = a.to(brain), b.to(brain)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            z = x @ y
        for _ in range(3):
            graph.replay()
        return z

    yield "mm float32", lambda: a @ b
    yield "mm tf32", tf32
    yield "mm float64", lambda: a.double() @ b.double()
    yield "mm bfloat16", lambda: a.to(brain) @ b.to(brain)
    yield "mm float16", lambda: a.to(half) @ b.to(half)
    yield "mm complex64", lambda: torch.view_as_real(a.to(torch.complex64) @ b.to(torch.complex64))
    yield "mm transposed", lambda: a.to(brain) @ b.t().contiguous().to(brain).t()
    yield "bmm", lambda: a3.to(brain) @ b3.to(brain)
    yield "baddbmm float32", lambda: torch.baddbmm(c3, a3, b3)
    yield "linear with bias", lambda: linear(a.to(brain))
    yield "addmm with gelu", lambda: torch._addmm_activation(bias, a.to(brain), b.to(brain), use_gelu=True)
    yield "einsum", lambda: torch.einsum("bmk,bkn->bmn", a3.to(brain), b3.to(brain))
    yield "scaled_mm", lambda: torch._scaled_mm(a8, b8, scale_a=one, scale_b=one, out_dtype=brain)
    yield "scaled_mm by row", lambda: torch._scaled_mm(a8, b8, scale_a=rows, scale_b=columns, out_dtype=brain)
    yield "int_mm", lambda: torch._int_mm(*integers)
    yield "mm in a graph", in_graph


def run(path):
    import numpy
    import torch
    results = {}
    with torch.no_grad():
        for name, product in products():
            try:
                results[name] = product().float().cpu().numpy()
            except RuntimeError as error:
                results[name] = numpy.zeros(1)
                print(f"{name}: {str(error).splitlines()[0]}")
        numpy.savez(path, **results)
        x = torch.randn(64, 64, device="cuda", dtype=torch.bfloat16)
        linear = torch.nn.Linear(64, 64, device="cuda", dtype=torch.bfloat16)
        for what, call in (("mm", lambda: x @ x), ("linear", lambda: linear(x))):
            times = []
            for _ in range(40):
                torch.cuda.synchronize()
                begin = time.perf_counter_ns()
                for _ in range(200):
                    call()
                times.append((time.perf_counter_ns() - begin) / 200)
            print(f"host time of {what}: least {min(times):.0f} ns, median {sorted(times)[20]:.0f} ns")


def run_jax(path):
    import jax
    import numpy
    a, b = jax.random.normal(jax.random.key(1), (M, K)), jax.random.normal(jax.random.key(2), (K, N))
    multiply = jax.jit(lambda x, y: x @ y)
    numpy.savez(path, float32=multiply(a, b), bfloat16=multiply(a.astype("bfloat16"), b.astype("bfloat16")).astype("float32"))


def calls(path):
    """Of the text of a log: each GPU product as a dictionary, in order of time."""
    names, shapes, found, kind = {0: ""}, {}, [], None
    for line in open(path, encoding="utf-8", errors="replace"):
        if match := re.match(r"\s+at \w+: kind (\d+)", line):
            kind = int(match[1])
        elif line.startswith("step"):
            kind = None
        elif kind == 0 and (match := re.match(r"    (\d+) = (.*)", line)):
            names[int(match[1])] = match[2]
        elif kind == 24:
            values = [int(value) for value in line.split()]
            keys = "function library algorithm epilogue scaling a b c compute".split()
            shapes[values[0]] = dict(zip(keys, (names[value] for value in values[1:10])))
        elif kind == 25:
            begin, end, m, n, k, batch, shape = (int(value) for value in line.split())
            found.append({"begin": begin, "us": (end - begin) / 1e3, "m": m, "n": n, "k": k, "batch": batch, **shapes[shape]})
    return sorted(found, key=lambda call: call["begin"])


def text(call):
    return "{function} {m}x{n}x{k} batch {batch} {a} {b} {c} in {compute} epilogue [{epilogue}] scaling [{scaling}] [{algorithm}]".format(**call)


def check(path, kind):
    found = [call for call in calls(path) if call["k"] != 64]
    if kind == "jax":
        for call in found[:12]:
            print(text(call))
        # XLA tries products in parts of k, too: 8 of 28.
        return 0 if any(call["k"] * call["batch"] == K and {call["m"], call["n"]} == {M, N} for call in found) else 1
    wrong = abs(len(found) - len(TORCH))
    for call, (name, (m, n, k, batch), a, c, compute, epilogue, scaling) in zip(found, TORCH):
        good = (call["m"], call["n"], call["k"], call["batch"]) == (n, m, k, batch)  # column-major: the other way round
        good = good and (call["a"], call["c"]) == (a, c)
        for key, wanted in (("compute", compute), ("epilogue", epilogue), ("scaling", scaling)):
            good = good and (wanted is None or call[key] == wanted)
        wrong += not good
        print("good " if good else "WRONG", f"{name:18}", text(call))
    flops = sum(2 * call["m"] * call["n"] * call["k"] * call["batch"] for call in found)
    wanted = sum(2 * m * n * k * batch for _, (m, n, k, batch), *_ in TORCH)
    print(f"{len(found)} calls, {len(TORCH)} made; 2mnk adds up to {flops}, should be {wanted}")
    return 1 if wrong or flops != wanted else 0


def compare(first, second):
    import numpy
    a, b = numpy.load(first), numpy.load(second)
    different = [name for name in a.files if not numpy.array_equal(a[name], b[name])]
    most = {name: float(numpy.abs(a[name] - b[name]).max() / numpy.abs(a[name]).max()) for name in different}
    print("results with and without are", "the same" if not different else f"different, relative to the largest value: {most}")
    return 1 if different else 0


if __name__ == "__main__":
    action, *rest = sys.argv[1:]
    sys.exit({"run": run, "jax": run_jax, "check": check, "compare": compare}[action](*rest))
