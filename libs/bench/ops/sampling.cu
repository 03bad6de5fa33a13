// argmax and top-k of rows of logits. Several blocks share a row: each keeps the best of its part, and the last of them
// to finish chooses among what all of them kept. A logit and its position become one 64-bit key that orders both: the
// larger value first, of equal ones the lower position. All keys of a row differ.

#include "bench/ops/rows.cuh"

namespace llmprof {

constexpr int kThreads = 512;
constexpr int kBins = 2048;
constexpr int kMostSelected = 1024;
using Key = unsigned long long;

// Unsigned numbers in the order of the floats. -0 is 0.
__device__ inline std::uint32_t ordered(float value) {
  const std::uint32_t bits = __float_as_uint(value + 0.0f);
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}
__device__ inline float unordered(std::uint32_t bits) {
  return __uint_as_float((bits & 0x80000000u) != 0 ? bits & 0x7fffffffu : ~bits);
}
__device__ inline Key key_of(std::uint32_t value, std::uint32_t position) {
  return static_cast<Key>(value) << 32 | (0xffffffffu - position);
}
template <class T>
__device__ inline void write(Key key, T* value, std::int32_t* index) {
  *value = from_float<T>(unordered(static_cast<std::uint32_t>(key >> 32)));
  *index = static_cast<std::int32_t>(0xffffffffu - static_cast<std::uint32_t>(key));
}

// A block's share of a row.
struct Part {
  std::int64_t row, begin;
  int index, size;
};
__device__ inline Part part_of_block(std::int64_t vocab, std::int64_t part, std::int64_t parts) {
  const std::int64_t row = blockIdx.x / parts, index = blockIdx.x % parts, begin = index * part;
  return {row, begin, static_cast<int>(index), static_cast<int>(min(part, vocab - begin))};
}

// Whether all other blocks of the row have already written what they keep: true in exactly one block. The counter is
// zero again afterwards. One thread's fences stand for the whole block's, between barriers.
__device__ inline bool is_last_of_row(unsigned* counter, std::int64_t parts) {
  __shared__ bool last;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    last = atomicInc(counter, static_cast<unsigned>(parts - 1)) == parts - 1;
    __threadfence();
  }
  __syncthreads();
  return last;
}

__device__ inline Key block_max(Key key) {
  __shared__ Key of_warp[kThreads / 32];
  for (int offset = 16; offset > 0; offset /= 2) key = max(key, __shfl_xor_sync(0xffffffffu, key, offset));
  __syncthreads();
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = key;
  __syncthreads();
  key = of_warp[threadIdx.x % (kThreads / 32)];
  for (int offset = kThreads / 64; offset > 0; offset /= 2) key = max(key, __shfl_xor_sync(0xffffffffu, key, offset));
  return key;
}

// The best of what this thread sees. Positions grow, so only a larger value replaces what is held. Of a pack only its
// largest is looked at: which of its values that was is found out once, at the end.
template <class T>
__device__ Key thread_argmax(const T* logits, const Part& part, bool aligned) {
  constexpr int kPack = Pack<T>::kSize;
  float best = NAN;  // no value is <= NaN: the first is taken, -infinity, too
  int position = 0;
  if (aligned) {
#pragma unroll 4
    for (int at = threadIdx.x * kPack; at < part.size; at += kThreads * kPack) {
      float values[kPack], most = -INFINITY;
      load_floats<kPack>(logits + at, values);
#pragma unroll
      for (int i = 0; i < kPack; ++i) most = fmaxf(most, values[i]);
      const bool larger = !(most <= best);
      best = larger ? most : best;
      position = larger ? at : position;
    }
    if (best == best) {
      for (const int last = position + kPack - 1; position < last && to_float(logits[position]) != best;) ++position;
    }
  } else {
    for (int at = threadIdx.x; at < part.size; at += kThreads) {
      const float value = to_float(logits[at]);
      const bool larger = !(value <= best);
      best = larger ? value : best;
      position = larger ? at : position;
    }
  }
  return best == best ? key_of(ordered(best), static_cast<std::uint32_t>(part.begin + position)) : 0;
}

template <class T>
__device__ void argmax(const T* logits, T* values, std::int32_t* indices, Key* kept, unsigned* counters,
                       std::int64_t vocab, std::int64_t part_size, std::int64_t parts) {
  const Part part = part_of_block(vocab, part_size, parts);
  Key best = block_max(thread_argmax(logits + part.row * vocab + part.begin, part, vocab % Pack<T>::kSize == 0));
  if (parts > 1) {
    Key* of_row = kept + part.row * parts;
    if (threadIdx.x == 0) of_row[part.index] = best;
    if (!is_last_of_row(counters + part.row, parts)) return;
    best = 0;
    for (int i = threadIdx.x; i < parts; i += kThreads) best = max(best, __ldcg(of_row + i));
    best = block_max(best);
  }
  if (threadIdx.x == 0) write(best, values + part.row, indices + part.row);
}

// The bin, counted from the highest, in which the `need`-th largest lies, and how many lie above it.
struct Bin {
  int index;
  unsigned above, count;
};
__device__ Bin find_bin(const unsigned* histogram, unsigned need) {
  constexpr int kPerThread = kBins / kThreads;
  __shared__ unsigned of_warp[kThreads / 32];
  __shared__ Bin found;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, top = kBins - 1 - threadIdx.x * kPerThread;
  unsigned own = 0;
  for (int i = 0; i < kPerThread; ++i) own += histogram[top - i];
  unsigned sum = own;
  for (int offset = 1; offset < 32; offset *= 2) {
    const unsigned other = __shfl_up_sync(0xffffffffu, sum, offset);
    if (lane >= offset) sum += other;
  }
  if (lane == 31) of_warp[warp] = sum;
  __syncthreads();
  for (int i = 0; i < warp; ++i) sum += of_warp[i];
  unsigned above = sum - own;
  if (above < need && need <= sum) {
    int bin = top;
    for (; above + histogram[bin] < need; --bin) above += histogram[bin];
    found = {bin, above, histogram[bin]};
  }
  __syncthreads();
  return found;
}

// What selecting needs of shared memory.
struct Scratch {
  unsigned histogram[kBins];
  Key members[kThreads];
  int member_count, selected;
};

constexpr int kFirstBits = 11;  // kBins of them
__device__ inline unsigned first_digit(Key key) { return static_cast<unsigned>(key >> (64 - kFirstBits)); }

__device__ inline void clear(unsigned* histogram) {
  for (int i = threadIdx.x; i < kBins; i += kThreads) histogram[i] = 0;
  __syncthreads();
}

// The k largest of `count` keys, in any order, to `out`; zeros if there are fewer. The histogram holds the first
// digits. From the highest bits down: keys of higher bins than the one in which the k-th lies are selected; the same is
// asked of that bin's members by their next digit, until they are few enough to be compared with each other.
template <class Keys>
__device__ void select(const Keys& keys, int count, int k, Scratch& scratch, Key* out) {
  if (threadIdx.x == 0) scratch.selected = scratch.member_count = 0;
  for (int i = count + threadIdx.x; i < k; i += kThreads) out[i] = 0;
  __syncthreads();
  if (count <= k) {
    for (int i = threadIdx.x; i < count; i += kThreads) out[i] = keys(i);
    __syncthreads();
    return;
  }
  auto need = static_cast<unsigned>(k);
  int shift = 64 - kFirstBits;
  Bin bin = find_bin(scratch.histogram, need);
  Key prefix = bin.index;  // of the bin in question: the bits above `shift`
  need -= bin.above;
  while (bin.count > kThreads && bin.count > need) {  // digits of 11, 11, 10, 11, 11, 10 bits
    const int bits = shift == 42 || shift == 10 ? 10 : 11;
    const unsigned mask = (1u << bits) - 1;
    clear(scratch.histogram);
    for (int i = threadIdx.x; i < count; i += kThreads) {
      const Key key = keys(i);
      if (key >> shift == prefix)
        atomicAdd(scratch.histogram + (static_cast<unsigned>(key >> (shift - bits)) & mask), 1u);
    }
    __syncthreads();
    shift -= bits;
    bin = find_bin(scratch.histogram, need);
    prefix = prefix << bits | bin.index;
    need -= bin.above;
  }
  const bool whole = bin.count <= need;
  for (int i = threadIdx.x; i < count; i += kThreads) {
    const Key key = keys(i), head = key >> shift;
    if (head > prefix || (whole && head == prefix)) {
      out[atomicAdd(&scratch.selected, 1)] = key;
    } else if (head == prefix) {
      scratch.members[atomicAdd(&scratch.member_count, 1)] = key;
    }
  }
  __syncthreads();
  if (!whole && static_cast<int>(threadIdx.x) < scratch.member_count) {
    const Key own = scratch.members[threadIdx.x];
    unsigned larger = 0;
    for (int i = 0; i < scratch.member_count; ++i) larger += scratch.members[i] > own;
    if (larger < need) out[k - 1 - larger] = own;  // what was selected so far is k - need: the last places are free
  }
  __syncthreads();
}

// Bitonic, the largest first, of a power of two.
__device__ void sort(Key* keys, int count) {
  for (int run = 2; run <= count; run *= 2) {
    for (int stride = run / 2; stride > 0; stride /= 2) {
      for (int i = threadIdx.x; i < count / 2; i += kThreads) {
        const int low = 2 * stride * (i / stride) + i % stride, high = low + stride;
        const bool falling = (low & run) == 0;
        const Key a = keys[low], b = keys[high];
        if ((a < b) == falling) {
          keys[low] = b;
          keys[high] = a;
        }
      }
      __syncthreads();
    }
  }
}

// Keys to shared memory, and their first digits counted on the way.
template <class T>
__device__ void load_keys(const T* logits, int size, bool aligned, std::uint32_t* keys, unsigned* histogram) {
  constexpr int kPack = Pack<T>::kSize;
  const auto take = [&](T value, int at) {
    keys[at] = ordered(to_float(value));
    atomicAdd(histogram + (keys[at] >> (32 - kFirstBits)), 1u);
  };
  if (aligned) {
#pragma unroll 2
    for (int at = threadIdx.x * kPack; at < size; at += kThreads * kPack) {
      const Pack<T> pack = load_pack(logits + at);
#pragma unroll
      for (int i = 0; i < kPack; ++i) take(pack.at[i], at + i);
    }
  } else {
    for (int at = threadIdx.x; at < size; at += kThreads) take(logits[at], at);
  }
  __syncthreads();
}

template <class T>
__device__ void top_k(const T* logits, T* values, std::int32_t* indices, Key* kept, unsigned* counters,
                      std::int64_t vocab, std::int64_t part_size, std::int64_t parts, int k) {
  extern __shared__ std::uint32_t keys[];  // part_size
  __shared__ Scratch scratch;
  __shared__ Key best[kMostSelected];
  const Part part = part_of_block(vocab, part_size, parts);
  clear(scratch.histogram);
  load_keys(logits + part.row * vocab + part.begin, part.size, vocab % Pack<T>::kSize == 0, keys, scratch.histogram);
  const auto begin = static_cast<std::uint32_t>(part.begin);
  const auto of_part = [=](int i) { return key_of(keys[i], begin + i); };
  if (parts == 1) {
    select(of_part, part.size, k, scratch, best);
  } else {
    Key* of_row = kept + part.row * parts * k;
    select(of_part, part.size, k, scratch, of_row + static_cast<std::int64_t>(part.index) * k);
    if (!is_last_of_row(counters + part.row, parts)) return;
    const int count = static_cast<int>(parts) * k;
    const auto of_all = [=](int i) { return __ldcg(of_row + i); };
    clear(scratch.histogram);
    for (int i = threadIdx.x; i < count; i += kThreads) atomicAdd(scratch.histogram + first_digit(of_all(i)), 1u);
    __syncthreads();
    select(of_all, count, k, scratch, best);
  }
  int padded = 2;
  while (padded < k) padded *= 2;
  for (int i = k + threadIdx.x; i < padded; i += kThreads) best[i] = 0;
  __syncthreads();
  sort(best, padded);
  for (int i = threadIdx.x; i < k; i += kThreads) write(best[i], values + part.row * k + i, indices + part.row * k + i);
}

// Pairs of kernels of one type; the arguments are the same.
#define LLMPROF_SAMPLING(name, T)                                                                     \
  extern "C" __global__ void __launch_bounds__(kThreads)                                              \
      argmax_##name(const T* logits, T* values, std::int32_t* indices, Key* kept, unsigned* counters, \
                    std::int64_t vocab, std::int64_t part, std::int64_t parts, std::int64_t) {        \
    argmax(logits, values, indices, kept, counters, vocab, part, parts);                              \
  }                                                                                                   \
  extern "C" __global__ void __launch_bounds__(kThreads)                                              \
      top_k_##name(const T* logits, T* values, std::int32_t* indices, Key* kept, unsigned* counters,  \
                   std::int64_t vocab, std::int64_t part, std::int64_t parts, std::int64_t k) {       \
    top_k(logits, values, indices, kept, counters, vocab, part, parts, static_cast<int>(k));          \
  }

LLMPROF_EACH_TYPE(LLMPROF_SAMPLING)

}  // namespace llmprof
