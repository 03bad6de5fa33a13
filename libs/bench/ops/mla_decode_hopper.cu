// Latent attention on Hopper, by its asynchronous tensor cores (wgmma), which read queries, keys and values straight from
// shared memory. A block of two groups of four warps takes 64 heads; for the scores a group takes half of the 64 rows of a
// tile, for the result half of the 512 dimensions. The rest is as in mla_decode.cu.

#include "bench/ops/mla_decode.cuh"

namespace llmprof {

// wgmma is of sm_90a alone: other targets get kernels that do nothing, and are not launched.
#ifdef __CUDA_ARCH_FEAT_SM90_ALL

namespace mla_hopper {

using namespace mla;  // NOLINT: the same kernel, another machine

// A tile of 64 rows lies as nine blocks of 64 columns, each 64 rows of 128 bytes, swizzled by 128.
constexpr int kBlockBytes = 64 * 128, kTileBytes = kWidth / 64 * kBlockBytes;

__device__ inline void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void end_products() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}
// What ordinary copies wrote, the tensor cores may read.
__device__ inline void publish_copies() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// Rows of 128 bytes swizzled by 128, eight of them 1024 bytes from the next eight.
__device__ inline std::uint64_t matrix_at(std::uint32_t address) {
  return (std::uint64_t{1} << 62) | (std::uint64_t{1024 >> 4} << 32) | (std::uint64_t{kBlockBytes >> 4} << 16) |
         ((address & 0x3ffff) >> 4);
}

#define LLMPROF_MLA_FLOATS_8(s, i) \
  "+f"(s[i]), "+f"(s[i + 1]), "+f"(s[i + 2]), "+f"(s[i + 3]), "+f"(s[i + 4]), "+f"(s[i + 5]), "+f"(s[i + 6]), "+f"(s[i + 7])

// scores (64 x 32) += queries (64 x 16) · keys (32 x 16) transposed
#define LLMPROF_MLA_SCORES(type)                                                                                      \
  asm volatile("wgmma.mma_async.sync.aligned.m64n32k16.f32." type "." type " {%0, %1, %2, %3, %4, %5, %6, %7, "       \
               "%8, %9, %10, %11, %12, %13, %14, %15}, %16, %17, 1, 1, 1, 0, 0;"                                      \
               : LLMPROF_MLA_FLOATS_8(s, 0), LLMPROF_MLA_FLOATS_8(s, 8)                                               \
               : "l"(queries), "l"(keys))
template <class T>
__device__ inline void multiply_keys(float (&s)[16], std::uint64_t queries, std::uint64_t keys);
template <>
__device__ inline void multiply_keys<__nv_bfloat16>(float (&s)[16], std::uint64_t queries, std::uint64_t keys) {
  LLMPROF_MLA_SCORES("bf16");
}
template <>
__device__ inline void multiply_keys<__half>(float (&s)[16], std::uint64_t queries, std::uint64_t keys) {
  LLMPROF_MLA_SCORES("f16");
}

// result (64 x 64) += weights (64 x 16, in registers) · values (16 x 64)
#define LLMPROF_MLA_VALUES(type)                                                                                      \
  asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type " {%0, %1, %2, %3, %4, %5, %6, %7, "       \
               "%8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, "                       \
               "%24, %25, %26, %27, %28, %29, %30, %31}, {%32, %33, %34, %35}, %36, 1, 1, 1, 1;"                      \
               : LLMPROF_MLA_FLOATS_8(s, 0), LLMPROF_MLA_FLOATS_8(s, 8), LLMPROF_MLA_FLOATS_8(s, 16),                 \
                 LLMPROF_MLA_FLOATS_8(s, 24)                                                                          \
               : "r"(w[0]), "r"(w[1]), "r"(w[2]), "r"(w[3]), "l"(values))
template <class T>
__device__ inline void multiply_values(float (&s)[32], const std::uint32_t (&w)[4], std::uint64_t values);
template <>
__device__ inline void multiply_values<__nv_bfloat16>(float (&s)[32], const std::uint32_t (&w)[4], std::uint64_t values) {
  LLMPROF_MLA_VALUES("bf16");
}
template <>
__device__ inline void multiply_values<__half>(float (&s)[32], const std::uint32_t (&w)[4], std::uint64_t values) {
  LLMPROF_MLA_VALUES("f16");
}

// One row of 1152 bytes by four threads; zeros if not valid.
__device__ inline void load_row(std::uint32_t tile, int row, const void* from, bool valid) {
#pragma unroll
  for (int i = 0; i < kRowBytes / 64; ++i) {
    const int piece = i * 4 + threadIdx.x % 4;
    copy_async(tile + piece / 8 * kBlockBytes + tile_offset<128>(row, piece % 8), static_cast<const char*>(from) + piece * 16, valid);
  }
}

template <class T>
__device__ void load_tile(std::uint32_t tile, const T* rows, const Cache& cache, int first) {
  const int row = threadIdx.x / 4, token = first + row;
  load_row(tile, row, rows + cache.row(min(token, cache.context - 1)) * kWidth, token < cache.context);
}

template <class T>
__device__ void run(const T* q, const T* rows, T* out, const Task& task, float scale) {
  extern __shared__ __align__(1024) unsigned char memory[];
  // Swizzling looks at addresses: tiles begin at multiples of 1024 bytes.
  const std::uint32_t begin = shared_address(memory), queries = (begin + 1023) / 1024 * 1024, stages = queries + kTileBytes;
  Shared& shared = *reinterpret_cast<Shared*>(memory + (queries - begin) + 3 * kTileBytes);
  const std::uint32_t weights = shared_address(shared.weights);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, row = lane / 4, column = lane % 4;
  const int head = warp % 4 * 16, half = warp / 4, own = threadIdx.x / 4;
  load_row(queries, own, q + (task.first_head + min(own, task.heads_here - 1)) * kWidth, own < task.heads_here);
  load_tile(stages, rows, task.cache, task.begin * kTokens);
  commit_copies();
  float result[4][32] = {}, highest[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0};
  for (int tile = task.begin; tile < task.end; ++tile) {
    const std::uint32_t now = stages + (tile - task.begin) % 2 * kTileBytes;
    wait_copies<0>();
    publish_copies();
    __syncthreads();  // the tile is here, and nobody reads the other stage any more
    if (tile + 1 < task.end) {
      load_tile(stages + (tile + 1 - task.begin) % 2 * kTileBytes, rows, task.cache, (tile + 1) * kTokens);
      commit_copies();
    }
    float flat[16] = {}, scores[4][4], shrink[2];
    begin_products();
#pragma unroll
    for (int i = 0; i < kWidth / 16; ++i) {
      const std::uint32_t at = i / 4 * kBlockBytes + i % 4 * 32;
      multiply_keys<T>(flat, matrix_at(queries + at), matrix_at(now + at + half * (32 * 128)));
    }
    end_products();
#pragma unroll
    for (int i = 0; i < 16; ++i) scores[i / 4][i % 4] = flat[i];
    mask(scores, tile * kTokens + half * 32 + column * 2, task.cache.context);
    soften<T>(scores, shared, highest, sum, shrink, scale * kLog2E, head, half, row, column);
    __syncthreads();
    std::uint32_t w[4][4];
#pragma unroll
    for (int i = 0; i < 4; ++i) load_matrices(w[i], weights + tile_offset<kWeightBytes>(head + lane % 16, i * 2 + lane / 16));
#pragma unroll
    for (int n = 0; n < 4; ++n) {
#pragma unroll
      for (int i = 0; i < 32; ++i) result[n][i] *= shrink[i / 2 % 2];
    }
    begin_products();
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int n = 0; n < 4; ++n) multiply_values<T>(result[n], w[i], matrix_at(now + (half * 4 + n) * kBlockBytes + i * (16 * 128)));
    }
    end_products();
  }
  finish_sums(shared, task.part, highest, sum, head, half, row, column);
#pragma unroll
  for (int n = 0; n < 4; ++n) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int d = half * 256 + n * 64 + i * 8 + column * 2;
      store_pair(task, shared, out, head + row, d, result[n][i * 4], result[n][i * 4 + 1]);
      store_pair(task, shared, out, head + row + 8, d, result[n][i * 4 + 2], result[n][i * 4 + 3]);
    }
  }
}

}  // namespace mla_hopper

#define LLMPROF_MLA_RUN(T) mla_hopper::run<T>(q, rows, out, mla::Task(pages, parts, context, heads, page, splits), scale)
#else
#define LLMPROF_MLA_RUN(T)
#endif

#define LLMPROF_MLA_HOPPER(type, T)                                                                                       \
  __global__ void __launch_bounds__(256, 1) mla_decode_hopper_##type(const T* q, const T* rows, T* out, const int* pages, \
                                                                     mla::Part* parts, int context, int heads, int page,  \
                                                                     int splits, float scale) {                           \
    LLMPROF_MLA_RUN(T);                                                                                                   \
  }

extern "C" {
LLMPROF_MLA_HOPPER(bfloat16, __nv_bfloat16)
LLMPROF_MLA_HOPPER(float16, __half)
}

}  // namespace llmprof
