"""Two worker processes that multiply matrices in numpy, forked by a parent that multiplies, too."""
import multiprocessing
import os
import time

import numpy

import figures

SIZE = 96


def multiply(count):
    x = numpy.eye(SIZE, dtype=numpy.float32)
    for _ in range(count):
        x = (x + 1) @ x
        x /= numpy.abs(x).max()
    time.sleep(0.3)  # so that each worker gets one
    return os.getpid(), count, float(x.sum()).hex()


def main():
    began = time.perf_counter()
    done = [multiply(5)]
    with multiprocessing.get_context("fork").Pool(2) as pool:
        done += pool.map(multiply, [20, 30], chunksize=1)
        pool.close()
        pool.join()
    figures.show(sums=[total for _, _, total in done], products=[count for _, count, _ in done],
                 pids=[pid for pid, _, _ in done], elapsed_s=time.perf_counter() - began)


if __name__ == "__main__":
    main()
