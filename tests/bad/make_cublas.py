"""Damaged logs of cuBLAS, cuBLASLt and NCCL, one per line of the catalogue. cases() -> name: content."""


def block(m=2, n=3, k=4, pid=7, function="cublasSgemm_v2"):
    return (f"I! cuBLAS (v13.1.0) function cublasStatus_t {function}(cublasHandle_t, int) called:\n"
            f"i!  transa: type=cublasOperation_t; val=CUBLAS_OP_N(0)\n"
            f"i!  m: type=int; val={m}\ni!  n: type=int; val={n}\ni!  k: type=int; val={k}\n"
            "i! Time: 2026-11-15T19:25:56 elapsed from start 0.1 minutes or 10.0 seconds\n"
            f"i!Process={pid}; Thread=99; GPU=0; Handle=POINTER (IN HEX:0x0x37); MathMode=CUBLAS_DEFAULT_MATH\n"
            "i! COMPILED WITH: GNU GCC/G++\n").encode()


LT = (b"[2026-11-15 19:25:56][cublasLt][1846][Trace][cublasLtMatmul] A=0X7 Adesc=[type=R_16BF rows=64 cols=48 ld=64] "
      b"B=0X8 Bdesc=[type=R_16BF rows=64 cols=16 ld=64] C=0X9 Cdesc=[type=R_16BF rows=48 cols=16 ld=48] D=0X9 "
      b"Ddesc=[type=R_16BF rows=48 cols=16 ld=48] computeDesc=[computeType=COMPUTE_32F scaleType=R_32F transa=OP_T] "
      b"algo=[algoId=66 tile=MATMUL_TILE_64x8] beta=0 stream=0X0\n")
NCCL = (b"host:1832:1832 [0] NCCL INFO AllReduce: opCount 0 sendbuff 0x7 recvbuff 0x7 count 8192 datatype 9 op 0 root 0 "
        b"comm 0x16 [nranks=2] stream (nil)\n")


def cases():
    one, two = block(), block(5, 6, 7, pid=8)
    cut = one.index(b"i!  n")
    return {
        "two_processes.log": one + two + one,
        "interleaved.log": one + one[:cut] + two[:two.index(b"i!  k")] + one[cut:] + two,
        "torn.log": one + one[:cut] + LT[:150] + LT + LT[:60],
        "colours.log": b"\x1b[32m" + LT[:-1] + b"\x1b[0m\n",
        "program_output.log": b"loading\n" + one + b"step 1\n",
        "long_line.log": one + b"x" * (3 << 20) + b"\n" + one,
        "binary.log": one + bytes(range(256)) * 16 + b"\n" + one,
        "cut.log": one + one[:one.index(b"i! Time")],
        "no_products.log": block(function="cublasSetStream_v2"),
        "no_shapes.log": LT.replace(b"[Trace]", b"[Api]"),
        "other_functions.log": one + block(function="cublasStrsm_v2"),
        "nccl.log": NCCL + NCCL[:60] + NCCL + b"\x1b[1mdone\n",
        "nccl_without_collectives.log": b"host:1:1 [0] NCCL INFO Using network Socket\n",
    }
