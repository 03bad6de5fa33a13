#pragma once
// What kernels share that stream through values or work row by row. Memory is their limit: 16 bytes per access, several
// accesses in flight, and a row is read once and kept in registers if it fits.

#include "bench/cuda/vector.cuh"

namespace llmprof {

// Two values of two bytes in one word, and back. Words stay packed in registers; compilers unpack arrays of such
// values.
template <class T>
__device__ inline float2 unpacked(unsigned word);
template <>
__device__ inline float2 unpacked<__half>(unsigned word) {
  return __half22float2(*reinterpret_cast<const __half2*>(&word));
}
template <>
__device__ inline float2 unpacked<__nv_bfloat16>(unsigned word) {
  return {__uint_as_float(word << 16), __uint_as_float(word & 0xffff0000u)};
}
template <class T>
__device__ inline unsigned packed(float low, float high);
template <>
__device__ inline unsigned packed<__half>(float low, float high) {
  const __half2 both = __floats2half2_rn(low, high);
  return *reinterpret_cast<const unsigned*>(&both);
}
template <>
__device__ inline unsigned packed<__nv_bfloat16>(float low, float high) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const unsigned*>(&both);
}

// What one access moves: 16 bytes, or a single value where rows do not all begin at a multiple of 16 bytes.
template <class T, int kAccess>
struct alignas(16) Piece {
  unsigned word[4];
  __device__ void get(float* values) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 two = unpacked<T>(word[i]);
      values[2 * i] = two.x;
      values[2 * i + 1] = two.y;
    }
  }
  __device__ void set(const float* values) {
#pragma unroll
    for (int i = 0; i < 4; ++i) word[i] = packed<T>(values[2 * i], values[2 * i + 1]);
  }
};
template <>
struct alignas(16) Piece<float, 4> {
  float value[4];
  __device__ void get(float* values) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) values[i] = value[i];
  }
  __device__ void set(const float* values) {
#pragma unroll
    for (int i = 0; i < 4; ++i) value[i] = values[i];
  }
};
template <class T>
struct Piece<T, 1> {
  T value;
  __device__ void get(float* values) const { values[0] = to_float(value); }
  __device__ void set(const float* values) { value = from_float<T>(values[0]); }
};

template <int kAccess, class T>
__device__ inline Piece<T, kAccess> load_piece(const T* from) {
  return *reinterpret_cast<const Piece<T, kAccess>*>(from);
}

template <int kAccess, class T>
__device__ inline void store_piece(T* to, const Piece<T, kAccess>& piece) {
  *reinterpret_cast<Piece<T, kAccess>*>(to) = piece;
}

template <int kAccess, class T>
__device__ inline void load_floats(const T* from, float* values) {
  load_piece<kAccess>(from).get(values);
}

template <int kAccess, class T>
__device__ inline void store_floats(T* to, const float* values) {
  Piece<T, kAccess> piece;
  piece.set(values);
  store_piece(to, piece);
}

// One value of each input to one value of the output: out = f({in[0], in[1], …}).
template <int kAccess, int kInputs, class T, class F>
__device__ inline void stream_values(const Piece<T, kAccess> (&read)[kInputs], T* out, F f) {
  float values[kInputs][kAccess], result[kAccess];
#pragma unroll
  for (int i = 0; i < kInputs; ++i) read[i].get(values[i]);
#pragma unroll
  for (int j = 0; j < kAccess; ++j) {
    float value[kInputs];
#pragma unroll
    for (int i = 0; i < kInputs; ++i) value[i] = values[i][j];
    result[j] = f(value);
  }
  store_floats<kAccess>(out, result);
}

template <int kAccess, int kInputs, class T, class F>
__device__ inline void stream_piece(const T* const (&in)[kInputs], T* out, int at, F f) {
  Piece<T, kAccess> read[kInputs];
#pragma unroll
  for (int i = 0; i < kInputs; ++i) read[i] = load_piece<kAccess>(in[i] + at);
  stream_values(read, out + at, f);
}

// kUnroll accesses per thread, all of them in flight before the first is used.
template <int kUnroll, int kAccess, int kInputs, class T, class F>
__device__ inline void stream_whole(const T* const (&in)[kInputs], T* out, F f) {
  Piece<T, kAccess> read[kUnroll][kInputs];
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
#pragma unroll
    for (int i = 0; i < kInputs; ++i) {
      read[u][i] = load_piece<kAccess>(in[i] + (u * blockDim.x + threadIdx.x) * kAccess);
    }
  }
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) stream_values(read[u], out + (u * blockDim.x + threadIdx.x) * kAccess, f);
}

// The same at the end of the values, where a block's share is not full and the last access not whole.
template <int kUnroll, int kAccess, int kInputs, class T, class F>
__device__ inline void stream_rest(const T* const (&in)[kInputs], T* out, std::int64_t count, F f) {
  for (int u = 0; u < kUnroll; ++u) {
    const int at = (u * blockDim.x + threadIdx.x) * kAccess;
    if (at + kAccess <= count) {
      stream_piece<kAccess>(in, out, at, f);
    } else {
      for (int j = at; j < count; ++j) stream_piece<1>(in, out, j, f);
    }
  }
}

// `count`: values from here to the end.
template <int kUnroll, int kAccess, int kInputs, class T, class F>
__device__ inline void stream_block(const T* const (&in)[kInputs], T* out, std::int64_t count, F f) {
  if (count >= static_cast<std::int64_t>(kUnroll) * kAccess * blockDim.x) {
    stream_whole<kUnroll, kAccess>(in, out, f);
  } else {
    stream_rest<kUnroll, kAccess>(in, out, count, f);
  }
}

// A whole tensor, one value after the other, whatever its shape. As launched by stream_launch of rows.h: two accesses
// per thread where a value has two bytes and takes longer than its way through memory, else one (measured on an H200).
template <int kInputs, class T, class F>
__device__ inline void stream(const T* const (&in)[kInputs], T* out, std::int64_t values, F f) {
  constexpr int kPack = Pack<T>::kSize, kUnroll = sizeof(T) == 2 ? 2 : 1;
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x) * blockDim.x * kPack * kUnroll;
  const T* from[kInputs];
#pragma unroll
  for (int i = 0; i < kInputs; ++i) from[i] = in[i] + begin;
  stream_block<kUnroll, kPack>(from, out + begin, values - begin, f);
}

// Threads of a block at most, as in row_launch of rows.h. With two such blocks per multiprocessor a thread has 48
// registers: enough to keep its part of a row, few enough for the rows of several blocks to be on their way.
constexpr int kRowThreads = 640;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ == 750
constexpr int kRowBlocks = 1;  // Turing has room for 1024 threads
#else
constexpr int kRowBlocks = 2;
#endif

// The threads of a row are those with one threadIdx.y: lanes of a warp (their number a power of two), or a whole block.
// Every thread of the block calls these.
__device__ inline float row_sum(float value) {
  if (blockDim.x > 32) return block_sum(value);
  for (unsigned offset = blockDim.x / 2; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}
__device__ inline float row_max(float value) {
  if (blockDim.x > 32) return block_max(value);
  for (unsigned offset = blockDim.x / 2; offset > 0; offset /= 2) {
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, offset));
  }
  return value;
}

__device__ inline std::int64_t row_index() { return static_cast<std::int64_t>(blockIdx.x) * blockDim.y + threadIdx.y; }

// This thread's part of a row: up to 64 bytes, kept in registers. A row with more than all its threads keep is read
// again, from the cache, in every pass. Widths are under 2^30 (check_rows of rows.h).
template <class T, int kAccess, class Load>
class Row {
 public:
  // `load(column)` gives a piece. A width of 0 makes an empty row that takes part in reductions.
  __device__ Row(int width, Load load) : width_(width), load_(load) {}

  // f(column, values) for each piece that this thread has.
  template <class F>
  __device__ void each(F f) {
    const int stride = kPieces * kAccess * blockDim.x;
    for (int begin = 0; begin < width_; begin += stride) {
      if (!kept_) read(begin);
#pragma unroll
      for (int p = 0; p < kPieces; ++p) {
        const int column = begin + (p * blockDim.x + threadIdx.x) * kAccess;
        if (column >= width_) continue;
        float values[kAccess];
        piece_[p].get(values);
        f(column, values);
      }
    }
    kept_ = width_ <= stride;
  }

 private:
  static constexpr int kPieces = kAccess == 1 ? 8 : 4;  // as in row_launch of rows.h

  __device__ void read(int begin) {
#pragma unroll
    for (int p = 0; p < kPieces; ++p) {
      const int column = begin + (p * blockDim.x + threadIdx.x) * kAccess;
      if (column < width_) piece_[p] = load_(column);
    }
  }

  int width_;
  Load load_;
  bool kept_ = false;
  Piece<T, kAccess> piece_[kPieces] = {};
};

template <class T, int kAccess, class Load>
__device__ inline Row<T, kAccess, Load> make_row(int width, Load load) {
  return Row<T, kAccess, Load>(width, load);
}

// define(name, T) for every type that the kernels over rows know.
#define LLMPROF_EACH_TYPE(define) define(float32, float) define(float16, __half) define(bfloat16, __nv_bfloat16)

// A kernel whose blocks take rows as row_launch() of rows.h lays them out.
#define LLMPROF_ROW_KERNEL extern "C" __global__ void __launch_bounds__(kRowThreads, kRowBlocks)

}  // namespace llmprof
