// The body of peak_kernels.cpp, compiled once per instruction set: no #pragma once. Needs LLMPROF_VECTOR_BYTES,
// LLMPROF_ACCUMULATORS and LLMPROF_STREAM_STORE(to, vector). Vectors are the compiler's own (vector_size), so the same text is AVX-512, AVX2, SSE2 or NEON;
// a·b + c becomes one instruction where the instruction set has it.

template <class Element>
struct VectorOf {
  typedef Element type __attribute__((vector_size(LLMPROF_VECTOR_BYTES)));
};

template <class Element>
std::int64_t multiply_add(std::int64_t rounds, double* sink) {
  using Vector = typename VectorOf<Element>::type;
  constexpr std::int64_t kLanes = LLMPROF_VECTOR_BYTES / sizeof(Element);
  // Every chain converges to 1: no overflow, no denormals. From `sink`, so that nothing is known when compiling.
  const Vector factor = Vector{} + static_cast<Element>(sink[0]);
  const Vector addend = Vector{} + static_cast<Element>(1 - sink[0]);
  Vector chains[LLMPROF_ACCUMULATORS];
  for (int i = 0; i < LLMPROF_ACCUMULATORS; ++i) chains[i] = Vector{} + static_cast<Element>(i);
  for (std::int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 32
    for (int i = 0; i < LLMPROF_ACCUMULATORS; ++i) chains[i] = chains[i] * factor + addend;
  }
  double total = 0;
  for (const Vector& chain : chains) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) total += static_cast<double>(chain[lane]);
  }
  sink[1] += total;
  return rounds * LLMPROF_ACCUMULATORS * kLanes * 2;
}

std::int64_t multiply_add_float32(std::int64_t rounds, double* sink) { return multiply_add<float>(rounds, sink); }
std::int64_t multiply_add_float64(std::int64_t rounds, double* sink) { return multiply_add<double>(rounds, sink); }

std::uint64_t sum(const std::byte* buffer, std::size_t bytes, std::int64_t passes) {
  using Vector = typename VectorOf<std::uint64_t>::type;
  constexpr std::size_t kSums = 8;
  Vector sums[kSums] = {};
  const auto* vectors = reinterpret_cast<const Vector*>(buffer);
  const std::size_t count = bytes / sizeof(Vector);
  for (std::int64_t pass = 0; pass < passes; ++pass) {
    for (std::size_t i = 0; i < count; i += kSums) {
#pragma GCC unroll 8
      for (std::size_t j = 0; j < kSums; ++j) sums[j] += vectors[i + j];
    }
    asm volatile("" ::: "memory");  // the next pass reads again
  }
  std::uint64_t total = 0;
  for (const Vector& part : sums) {
    for (std::size_t lane = 0; lane < sizeof(Vector) / sizeof(std::uint64_t); ++lane) total += part[lane];
  }
  return total;
}

enum class Stored { kConstant, kCopy, kTriad };

// Four vectors at a time, with a barrier behind them: compilers know loops that copy or fill, and would call the C
// library instead.
template <Stored kWhat, bool kStreaming>
void store(std::byte* to, const std::byte* a, const std::byte* b, std::size_t bytes, std::int64_t passes) {
  using Vector = typename VectorOf<float>::type;
  const auto* first = reinterpret_cast<const Vector*>(a);
  const auto* second = reinterpret_cast<const Vector*>(b);
  auto* out = reinterpret_cast<Vector*>(to);
  const Vector one = Vector{} + 1.0f;
  for (std::int64_t pass = 0; pass < passes; ++pass) {
    for (std::size_t i = 0; i < bytes / sizeof(Vector); i += 4) {
      Vector values[4];
#pragma GCC unroll 4
      for (std::size_t j = 0; j < 4; ++j) {
        if constexpr (kWhat == Stored::kConstant) values[j] = one;
        if constexpr (kWhat == Stored::kCopy) values[j] = first[i + j];
        if constexpr (kWhat == Stored::kTriad) values[j] = first[i + j] + 0.5f * second[i + j];
      }
#pragma GCC unroll 4
      for (std::size_t j = 0; j < 4; ++j) {
        if constexpr (kStreaming) {
          LLMPROF_STREAM_STORE(out + i + j, values[j]);
        } else {
          out[i + j] = values[j];
        }
      }
      asm volatile("" ::: "memory");
    }
  }
}

constexpr StoreKernels kPlain{store<Stored::kConstant, false>, store<Stored::kCopy, false>, store<Stored::kTriad, false>};
constexpr StoreKernels kStreaming{store<Stored::kConstant, true>, store<Stored::kCopy, true>, store<Stored::kTriad, true>};
