// Latent attention on Hopper, by its asynchronous tensor cores (wgmma), which read queries, keys and values straight from
// shared memory. A block takes 64 heads. Of its three groups of four warps, one computes scores and weights, 64 rows of the
// cache at a time; meanwhile the two others multiply the weights before with their values, half of the 512 dimensions each,
// and copy what comes next. Weights lie where the rotary part of their rows was: nobody needs it any more.
// The rest is as in mla_decode.cu.

#include "bench/ops/mla_decode.cuh"

namespace llmprof {

// wgmma is of sm_90a alone: other targets get kernels that do nothing, and are not launched.
#ifdef __CUDA_ARCH_FEAT_SM90_ALL

namespace mla_hopper {

using namespace mla;  // NOLINT: the same kernel, another machine

// A tile of 64 rows lies as nine blocks of 64 columns, each 64 rows of 128 bytes, swizzled by 128. The last is rotary.
constexpr int kBlockBytes = 64 * 128, kTileBytes = kWidth / 64 * kBlockBytes, kRotary = kRank / 64 * kBlockBytes;
constexpr int kThreads = 384, kAdders = 256;

// Barriers by number; those of tiles alternate between two.
enum Barrier : int { kLoaded = 1, kWeighed = 3, kAdded = 5, kScored = 6, kSummed = 7 };
__device__ inline void meet(int barrier, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}
__device__ inline void announce(int barrier, int threads) {
  __syncwarp();  // a warp arrives as one
  asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

__device__ inline void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void commit_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
__device__ inline void wait_products() { asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory"); }
// What ordinary instructions wrote, the tensor cores may read.
__device__ inline void publish() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// Rows of 128 bytes swizzled by 128, eight of them 1024 bytes from the next eight; the next 64 columns a block further.
__device__ inline std::uint64_t matrix_at(std::uint32_t address) {
  return (std::uint64_t{1} << 62) | (std::uint64_t{1024 >> 4} << 32) | (std::uint64_t{kBlockBytes >> 4} << 16) |
         ((address & 0x3ffff) >> 4);
}

#define LLMPROF_MLA_8(i)                                                                                              \
  "+f"(s[i]), "+f"(s[i + 1]), "+f"(s[i + 2]), "+f"(s[i + 3]), "+f"(s[i + 4]), "+f"(s[i + 5]), "+f"(s[i + 6]), "+f"(s[i + 7])
#define LLMPROF_MLA_32(i) LLMPROF_MLA_8(i), LLMPROF_MLA_8(i + 8), LLMPROF_MLA_8(i + 16), LLMPROF_MLA_8(i + 24)
#define LLMPROF_MLA_NAMES_32                                                                                          \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                                            \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define LLMPROF_MLA_NAMES_128                                                                                         \
  LLMPROF_MLA_NAMES_32 ", "                                                                                           \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "                                  \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "                                  \
  "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "                                  \
  "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "                                  \
  "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "                      \
  "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"

// s (64 x 64) += a (64 x 16) · b (64 x 16) transposed
#define LLMPROF_MLA_SCORES(type)                                                                                      \
  asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type " {" LLMPROF_MLA_NAMES_32                  \
               "}, %32, %33, 1, 1, 1, 0, 0;"                                                                          \
               : LLMPROF_MLA_32(0)                                                                                    \
               : "l"(a), "l"(b))
// s (64 x 256) += a (64 x 16) · b (16 x 256)
#define LLMPROF_MLA_VALUES(type)                                                                                      \
  asm volatile("wgmma.mma_async.sync.aligned.m64n256k16.f32." type "." type " {" LLMPROF_MLA_NAMES_128                \
               "}, %128, %129, 1, 1, 1, 0, 1;"                                                                        \
               : LLMPROF_MLA_32(0), LLMPROF_MLA_32(32), LLMPROF_MLA_32(64), LLMPROF_MLA_32(96)                        \
               : "l"(a), "l"(b))

__device__ inline void multiply_keys(float (&s)[32], std::uint64_t a, std::uint64_t b, __nv_bfloat16) { LLMPROF_MLA_SCORES("bf16"); }
__device__ inline void multiply_keys(float (&s)[32], std::uint64_t a, std::uint64_t b, __half) { LLMPROF_MLA_SCORES("f16"); }
__device__ inline void multiply_values(float (&s)[128], std::uint64_t a, std::uint64_t b, __nv_bfloat16) { LLMPROF_MLA_VALUES("bf16"); }
__device__ inline void multiply_values(float (&s)[128], std::uint64_t a, std::uint64_t b, __half) { LLMPROF_MLA_VALUES("f16"); }

// Behind the queries and two tiles.
struct Notes {
  float shrink[2][kHeads], sum[kHeads];
};

// One row of 1152 bytes by four threads; zeros if not valid.
__device__ inline void load_row(std::uint32_t tile, int row, int part, const void* from, bool valid) {
#pragma unroll
  for (int i = 0; i < kRowBytes / 64; ++i) {
    const int piece = i * 4 + part;
    copy_async(tile + piece / 8 * kBlockBytes + tile_offset<128>(row, piece % 8), static_cast<const char*>(from) + piece * 16, valid);
  }
}

template <class T>
__device__ void load_tile(std::uint32_t tile, const T* rows, const Cache& cache, int first, int thread) {
  const int token = first + thread / 4;
  load_row(tile, thread / 4, thread % 4, rows + cache.row(min(token, cache.context - 1)) * kWidth, token < cache.context);
}

// Scores of heads row and row + 8 of the warp become weights, in shared memory.
template <class T>
__device__ void soften(float (&s)[32], float (&highest)[2], float (&sum)[2], Notes& notes, unsigned char* weights, int stage,
                       float scale, int head, int column) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    float high = -INFINITY;
#pragma unroll
    for (int n = 0; n < 8; ++n) high = fmaxf(high, fmaxf(s[n * 4 + i * 2], s[n * 4 + i * 2 + 1]));
    high = fmaxf(high, __shfl_xor_sync(0xffffffffu, high, 1));
    high = fmaxf(highest[i], fmaxf(high, __shfl_xor_sync(0xffffffffu, high, 2)) * scale);
    const float shrink = exp2_fast(highest[i] - high);
    highest[i] = high;
    sum[i] *= shrink;
    if (column == 0) notes.shrink[stage][head + i * 8] = shrink;
#pragma unroll
    for (int n = 0; n < 8; ++n) {
      const float left = exp2_fast(s[n * 4 + i * 2] * scale - high), right = exp2_fast(s[n * 4 + i * 2 + 1] * scale - high);
      sum[i] += left + right;
      *reinterpret_cast<std::uint32_t*>(weights + tile_offset<kWeightBytes>(head + i * 8, n) + column * 4) = pack_pair<T>(left, right);
    }
  }
}

// The group of warps that computes weights.
template <class T>
__device__ void weigh(const Task& task, unsigned char* memory, Notes& notes, float scale) {
  const std::uint32_t queries = shared_address(memory);
  const int lane = threadIdx.x % 32, column = lane % 4, head = threadIdx.x / 32 * 16 + lane / 4;
  float highest[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0};
  for (int tile = task.begin; tile < task.end; ++tile) {
    const int stage = (tile - task.begin) % 2;
    const std::uint32_t now = queries + (1 + stage) * kTileBytes;
    meet(kLoaded + stage, kThreads);
    float s[32] = {};
    begin_products();
#pragma unroll
    for (int i = 0; i < kWidth / 16; ++i) {
      const std::uint32_t at = i / 4 * kBlockBytes + i % 4 * 32;
      multiply_keys(s, matrix_at(queries + at), matrix_at(now + at), T());
    }
    commit_products();
    wait_products();
    if ((tile + 1) * kTokens > task.cache.context) {
#pragma unroll
      for (int i = 0; i < 32; ++i) {
        if (tile * kTokens + i / 4 * 8 + column * 2 + i % 2 >= task.cache.context) s[i] = -INFINITY;
      }
    }
    meet(kScored, 128);  // no warp of the group reads the rotary part any more
    soften<T>(s, highest, sum, notes, memory + (1 + stage) * kTileBytes + kRotary, stage, scale * kLog2E, head, column);
    publish();
    announce(kWeighed + stage, kThreads);
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    sum[i] += __shfl_xor_sync(0xffffffffu, sum[i], 1);
    sum[i] += __shfl_xor_sync(0xffffffffu, sum[i], 2);
    if (column != 0) continue;
    notes.sum[head + i * 8] = sum[i];
    if (task.part != nullptr) task.part->sum[head + i * 8] = sum[i], task.part->highest[head + i * 8] = highest[i];
  }
  announce(kSummed, kThreads);
}

// One of the two groups of warps that load rows and add values.
template <class T>
__device__ void add(const T* q, const T* rows, T* out, const Task& task, unsigned char* memory, const Notes& notes) {
  const std::uint32_t queries = shared_address(memory);
  const int thread = threadIdx.x - 128, half = thread / 128, lane = thread % 32, column = lane % 4;
  const int head = thread / 32 % 4 * 16 + lane / 4, own = thread / 4;
  load_row(queries, own, thread % 4, q + (task.first_head + min(own, task.heads_here - 1)) * kWidth, own < task.heads_here);
  load_tile(queries + kTileBytes, rows, task.cache, task.begin * kTokens, thread);
  commit_copies();
  if (task.begin + 1 < task.end) load_tile(queries + 2 * kTileBytes, rows, task.cache, (task.begin + 1) * kTokens, thread);
  commit_copies();
  wait_copies<1>();
  publish();
  announce(kLoaded, kThreads);
  float result[128] = {};
  for (int tile = task.begin; tile < task.end; ++tile) {
    const int stage = (tile - task.begin) % 2;
    const std::uint32_t now = queries + (1 + stage) * kTileBytes;
    meet(kWeighed + stage, kThreads);
    const float shrink[2] = {notes.shrink[stage][head], notes.shrink[stage][head + 8]};
#pragma unroll
    for (int i = 0; i < 128; ++i) result[i] *= shrink[i / 2 % 2];
    begin_products();
#pragma unroll
    for (int i = 0; i < kTokens / 16; ++i) {
      multiply_values(result, matrix_at(now + kRotary + i * 32), matrix_at(now + half * 4 * kBlockBytes + i * (16 * 128)), T());
    }
    commit_products();
    if (tile + 1 < task.end) {
      wait_copies<0>();
      publish();
      announce(kLoaded + 1 - stage, kThreads);
    }
    wait_products();
    meet(kAdded, kAdders);  // nobody reads this tile any more
    if (tile + 2 < task.end) load_tile(now, rows, task.cache, (tile + 2) * kTokens, thread);
    commit_copies();
  }
  meet(kSummed, kThreads);
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const float sum = notes.sum[head + i * 8];
#pragma unroll
    for (int n = 0; n < 32; ++n) {
      store_pair(task, sum, out, head + i * 8, half * 256 + n * 8 + column * 2, result[n * 4 + i * 2], result[n * 4 + i * 2 + 1]);
    }
  }
}

template <class T>
__device__ void run(const T* q, const T* rows, T* out, const Task& task, float scale) {
  extern __shared__ __align__(1024) unsigned char shared[];
  // Swizzling looks at addresses: tiles begin at multiples of 1024 bytes.
  unsigned char* memory = shared + (1024 - shared_address(shared) % 1024) % 1024;
  Notes& notes = *reinterpret_cast<Notes*>(memory + 3 * kTileBytes);
  // Sums need more registers than scores: 128 x 104 + 256 x 200 are what a multiprocessor has.
  if (threadIdx.x < 128) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 104;");
    weigh<T>(task, memory, notes, scale);
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 200;");
    add<T>(q, rows, out, task, memory, notes);
  }
}

}  // namespace mla_hopper

#define LLMPROF_MLA_RUN(T) mla_hopper::run<T>(q, rows, out, mla::Task(pages, parts, context, heads, page, splits), scale)
#else
#define LLMPROF_MLA_RUN(T)
#endif

#define LLMPROF_MLA_HOPPER(type, T)                                                                                       \
  __global__ void __launch_bounds__(384, 1) mla_decode_hopper_##type(const T* q, const T* rows, T* out, const int* pages, \
                                                                     mla::Part* parts, int context, int heads, int page,  \
                                                                     int splits, float scale) {                           \
    LLMPROF_MLA_RUN(T);                                                                                                   \
  }

extern "C" {
LLMPROF_MLA_HOPPER(bfloat16, __nv_bfloat16)
LLMPROF_MLA_HOPPER(float16, __half)
}

}  // namespace llmprof
