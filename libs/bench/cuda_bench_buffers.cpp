#include "bench/cuda_bench_buffers.h"

#include "bench/bench_plan.h"
#include "bench/cuda/sampler.h"

namespace llmprof::bench {

Result<CudaBuffers> CudaBuffers::create(cuda::Context& context, std::span<const TensorSpec> specs, std::int64_t sets,
                                        std::uint64_t seed) {
  const auto stride = static_cast<std::int64_t>(set_bytes(specs, kCudaAlignment));
  CudaBuffers buffers;
  LLMPROF_LET(buffers.memory_, context.allocate(stride * sets));
  cuda::Pointer at = buffers.memory_.pointer();
  for (std::int64_t set = 0; set < sets; ++set) {
    auto& tensors = buffers.sets_.emplace_back();
    for (const TensorSpec& spec : specs) {
      tensors.push_back(at);
      if (spec.bytes() > 0 && spec.role == Role::kOut) LLMPROF_TRY(context.set_bytes(at, 0, spec.bytes()));
      if (spec.bytes() > 0 && spec.role != Role::kOut) LLMPROF_TRY(cuda::fill_random(context, at, spec, ++seed));
      at += static_cast<cuda::Pointer>(set_bytes({&spec, 1}, kCudaAlignment));
    }
  }
  LLMPROF_TRY(context.synchronize());
  return buffers;
}

}  // namespace llmprof::bench
