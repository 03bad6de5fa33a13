#pragma once
// Memory of a problem's tensors on a GPU: some sets of them in one allocation, filled with random data.

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "bench/cuda/context.h"
#include "bench/operator.h"

namespace llmprof::bench {

inline constexpr std::int64_t kCudaAlignment = 512;  // as frameworks align tensors

class CudaBuffers {
 public:
  // Inputs of each set are drawn anew; outputs are zero.
  static Result<CudaBuffers> create(cuda::Context& context, std::span<const TensorSpec> specs, std::int64_t sets,
                                    std::uint64_t seed);
  std::span<const cuda::Pointer> set(std::size_t index) const { return sets_[index]; }
  std::size_t sets() const { return sets_.size(); }

 private:
  cuda::Buffer memory_;
  std::vector<std::vector<cuda::Pointer>> sets_;
};

}  // namespace llmprof::bench
