// Latent attention on Hopper, by its asynchronous tensor cores (wgmma), which read queries, keys and values straight from
// shared memory. A block takes 64 heads. Of its three groups of four warps, one computes scores and weights, 64 rows of the
// cache at a time; meanwhile the two others multiply the weights before with their values, half of the 512 dimensions each,
// and copy what comes next. Weights lie where the rotary part of their rows was: nobody needs it any more.
// The rest is as in mla_decode.cu.

#include "bench/cuda/wgmma.cuh"
#include "bench/ops/mla_decode.cuh"

namespace llmprof {

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
      multiply(s, matrix_at<kBlockBytes>(queries + at), matrix_at<kBlockBytes>(now + at), T());
    }
    commit_products();
    wait_products<0>();
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
      multiply_plain(result, matrix_at<kBlockBytes>(now + kRotary + i * 32),
                     matrix_at<kBlockBytes>(now + half * 4 * kBlockBytes + i * (16 * 128)), T());
    }
    commit_products();
    if (tile + 1 < task.end) {
      wait_copies<0>();
      publish();
      announce(kLoaded + 1 - stage, kThreads);
    }
    wait_products<0>();
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
