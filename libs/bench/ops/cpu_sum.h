#pragma once
// For operators' files only, which are compiled with -fopenmp-simd.

#include <cstdint>

namespace llmprof::bench {

// f(0) + … + f(count - 1). Vectors add 1024 at a time in float32, which a long row's sum would lose digits in.
template <class F>
float vector_sum(std::int64_t count, F f) {
  constexpr std::int64_t kBlock = 1024;
  double total = 0;
  for (std::int64_t begin = 0; begin < count; begin += kBlock) {
    const std::int64_t end = begin + kBlock < count ? begin + kBlock : count;
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = begin; i < end; ++i) sum += f(i);
    total += sum;
  }
  return static_cast<float>(total);
}

}  // namespace llmprof::bench
