// Causal attention of whole sequences, one pass over the keys. A block of eight warps takes 128 queries of one head, each
// warp 16 of them with their sums in registers; keys and values come through shared memory in tiles of 64, the next tile
// on its way while one is computed.

#include "bench/cuda/tensor_cores.cuh"
#include "bench/cuda/vector.cuh"

namespace llmprof {

namespace prefill {

constexpr int kWarps = 8, kQueries = 16 * kWarps, kKeys = 64;

template <class T, int kDim>
struct Warp {
  static constexpr int kPieces = kDim / 8;  // of 16 bytes, per row
  std::uint32_t query[kDim / 16][4];
  float out[kDim / 8][4];
  float highest[2], sum[2];  // of queries row and row + 8

  __device__ void begin(const T* q, std::int64_t step, int first, int seq, int row, int column) {
#pragma unroll
    for (int i = 0; i < kDim / 16; ++i) {
#pragma unroll
      for (int part = 0; part < 4; ++part) {
        const int token = min(first + row + part % 2 * 8, seq - 1);
        query[i][part] = *reinterpret_cast<const std::uint32_t*>(q + token * step + i * 16 + part / 2 * 8 + column * 2);
      }
    }
#pragma unroll
    for (int i = 0; i < kDim / 8; ++i) out[i][0] = out[i][1] = out[i][2] = out[i][3] = 0;
    highest[0] = highest[1] = -INFINITY;
    sum[0] = sum[1] = 0;
  }

  // 16 queries x 64 keys
  __device__ void score(float (&scores)[kKeys / 8][4], std::uint32_t keys, int lane) const {
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) scores[n][0] = scores[n][1] = scores[n][2] = scores[n][3] = 0;
#pragma unroll
    for (int i = 0; i < kDim / 16; ++i) {
#pragma unroll
      for (int n = 0; n < kKeys / 16; ++n) {
        std::uint32_t b[4];
        load_matrices(b, keys + tile_offset<kDim * 2>(n * 16 + lane / 16 * 8 + lane % 8, i * 2 + lane / 8 % 2));
        multiply_add<T>(scores[n * 2], query[i][0], query[i][1], query[i][2], query[i][3], b[0], b[1]);
        multiply_add<T>(scores[n * 2 + 1], query[i][0], query[i][1], query[i][2], query[i][3], b[2], b[3]);
      }
    }
  }

  __device__ void soften(float (&scores)[kKeys / 8][4], float scale) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float high = -INFINITY;
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) high = fmaxf(high, fmaxf(scores[n][half * 2], scores[n][half * 2 + 1]));
      high = fmaxf(high, __shfl_xor_sync(0xffffffffu, high, 1));
      high = fmaxf(highest[half], fmaxf(high, __shfl_xor_sync(0xffffffffu, high, 2)) * scale);
      const float shrink = exp2_fast(highest[half] - high);
      highest[half] = high;
      sum[half] *= shrink;
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
        for (int i = half * 2; i < half * 2 + 2; ++i) sum[half] += scores[n][i] = exp2_fast(scores[n][i] * scale - high);
      }
#pragma unroll
      for (int i = 0; i < kDim / 8; ++i) out[i][half * 2] *= shrink, out[i][half * 2 + 1] *= shrink;
    }
  }

  __device__ void add_values(const float (&weights)[kKeys / 8][4], std::uint32_t values, int lane) {
#pragma unroll
    for (int n = 0; n < kKeys / 16; ++n) {
      const auto &left = weights[n * 2], &right = weights[n * 2 + 1];
      const std::uint32_t a0 = pack_pair<T>(left[0], left[1]), a1 = pack_pair<T>(left[2], left[3]);
      const std::uint32_t a2 = pack_pair<T>(right[0], right[1]), a3 = pack_pair<T>(right[2], right[3]);
#pragma unroll
      for (int i = 0; i < kDim / 16; ++i) {
        std::uint32_t b[4];
        load_matrices_transposed(b, values + tile_offset<kDim * 2>(n * 16 + lane % 16, i * 2 + lane / 16));
        multiply_add<T>(out[i * 2], a0, a1, a2, a3, b[0], b[1]);
        multiply_add<T>(out[i * 2 + 1], a0, a1, a2, a3, b[2], b[3]);
      }
    }
  }
};

// 64 rows of keys or values into a tile; rows beyond the sequence become zeros.
template <class T, int kDim>
__device__ void load_tile(std::uint32_t tile, const T* from, std::int64_t step, int first, int seq) {
  constexpr int kPieces = kDim / 8;
#pragma unroll
  for (int i = 0; i < kKeys * kPieces / (32 * kWarps); ++i) {
    const int at = i * 32 * kWarps + threadIdx.x, row = at / kPieces, piece = at % kPieces, token = first + row;
    copy_async(tile + tile_offset<kDim * 2>(row, piece), from + min(token, seq - 1) * step + piece * 8, token < seq);
  }
}

template <class T, int kDim>
__device__ void run(const T* q, const T* k, const T* v, T* out, int seq, int prior, int heads, int kv_heads, float scale) {
  extern __shared__ __align__(128) unsigned char memory[];
  constexpr std::uint32_t kTileBytes = kKeys * kDim * 2;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, row = lane / 4, column = lane % 4;
  // The last queries see the most keys: they begin first. Heads vary before queries, so that those that share keys meet.
  const int blocks = (seq + kQueries - 1) / kQueries, head = blockIdx.x % heads;
  const int rest = blockIdx.x / heads, batch = gridDim.x / heads / blocks;
  const int sequence = rest % batch, first = (blocks - 1 - rest / batch) * kQueries;
  const std::int64_t q_step = static_cast<std::int64_t>(heads) * kDim, kv_step = static_cast<std::int64_t>(kv_heads) * kDim;
  const int keys = prior + seq;  // query i is token prior + i of its sequence
  const std::int64_t query0 = static_cast<std::int64_t>(sequence) * seq, key0 = static_cast<std::int64_t>(sequence) * keys;
  q += query0 * q_step + head * kDim;
  out += query0 * q_step + head * kDim;
  k += key0 * kv_step + head / (heads / kv_heads) * kDim;
  v += key0 * kv_step + head / (heads / kv_heads) * kDim;

  const std::uint32_t stages = shared_address(memory);
  const int tiles = (prior + min(first + kQueries, seq) + kKeys - 1) / kKeys;
  load_tile<T, kDim>(stages, k, kv_step, 0, keys);
  load_tile<T, kDim>(stages + kTileBytes, v, kv_step, 0, keys);
  commit_copies();
  Warp<T, kDim> work;
  const int query = first + warp * 16;  // the first of this warp
  work.begin(q, q_step, query, seq, row, column);
  for (int tile = 0; tile < tiles; ++tile) {
    const std::uint32_t now = stages + tile % 2 * 2 * kTileBytes, then = stages + (tile + 1) % 2 * 2 * kTileBytes;
    wait_copies<0>();
    __syncthreads();  // the tile is here, and nobody reads the other stage any more
    if (tile + 1 < tiles) {
      load_tile<T, kDim>(then, k, kv_step, (tile + 1) * kKeys, keys);
      load_tile<T, kDim>(then + kTileBytes, v, kv_step, (tile + 1) * kKeys, keys);
      commit_copies();
    }
    const int key = tile * kKeys;
    if (key <= prior + query + 15) {  // else every key lies behind every query of this warp
      float scores[kKeys / 8][4];
      work.score(scores, now, lane);
      if (key + kKeys - 1 > prior + query) {
#pragma unroll
        for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            if (key + n * 8 + column * 2 + i % 2 > prior + query + row + i / 2 * 8) scores[n][i] = -INFINITY;
          }
        }
      }
      work.soften(scores, scale * kLog2E);
      work.add_values(scores, now + kTileBytes, lane);
    }
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float sum = work.sum[half];
    sum += __shfl_xor_sync(0xffffffffu, sum, 1);
    sum += __shfl_xor_sync(0xffffffffu, sum, 2);
    const int token = query + row + half * 8;
    if (token >= seq) continue;
#pragma unroll
    for (int i = 0; i < kDim / 8; ++i) {
      *reinterpret_cast<std::uint32_t*>(out + token * q_step + i * 8 + column * 2) =
          pack_pair<T>(work.out[i][half * 2] / sum, work.out[i][half * 2 + 1] / sum);
    }
  }
}

}  // namespace prefill

#define LLMPROF_PREFILL(dim, type, T)                                                                           \
  __global__ void __launch_bounds__(256, 1) attention_prefill_##dim##_##type(                                   \
      const T* q, const T* k, const T* v, T* out, int seq, int prior, int heads, int kv_heads, float scale) {   \
    prefill::run<T, dim>(q, k, v, out, seq, prior, heads, kv_heads, scale);                                     \
  }

extern "C" {
LLMPROF_PREFILL(64, bfloat16, __nv_bfloat16)
LLMPROF_PREFILL(128, bfloat16, __nv_bfloat16)
LLMPROF_PREFILL(64, float16, __half)
LLMPROF_PREFILL(128, float16, __half)
}

}  // namespace llmprof
