"""A chain of matrix products in numpy, single and double precision, and products with a vector. Ends with the
status that it is told."""
import hashlib
import sys
import time

import numpy

import figures

ROUNDS, SIZE, TALL = 16, 256, 512


def main():
    random = numpy.random.default_rng(0)
    weights = [random.standard_normal((SIZE, SIZE), dtype=numpy.float32) / SIZE ** 0.5 for _ in range(3)]
    double = random.standard_normal((SIZE, TALL))
    x = random.standard_normal((TALL, SIZE), dtype=numpy.float32)
    vector = random.standard_normal(SIZE, dtype=numpy.float32)
    calls = {"sgemm": 0, "dgemm": 0, "sgemv": 0}
    flops = dict.fromkeys(calls, 0)
    began = time.perf_counter()
    for _ in range(ROUNDS):
        for weight in weights:
            x = numpy.maximum(x @ weight, 0.1)
            calls["sgemm"] += 1
            flops["sgemm"] += 2 * TALL * SIZE * SIZE
        vector = weights[0] @ vector
        calls["sgemv"] += 1
        flops["sgemv"] += 2 * SIZE * SIZE
        wide = double[:64] @ double.T
        calls["dgemm"] += 1
        flops["dgemm"] += 2 * 64 * SIZE * TALL
    elapsed = time.perf_counter() - began
    result = hashlib.sha256(x.tobytes() + vector.tobytes() + wide.tobytes()).hexdigest()
    figures.show(result=result, calls=calls, flops=flops, elapsed_s=elapsed)
    sys.exit(int(sys.argv[1]) if len(sys.argv) > 1 else 0)


if __name__ == "__main__":
    main()
