#include "bench/cuda/pinned.h"

namespace llmprof::bench::cuda {

Result<PinnedBuffer> PinnedBuffer::allocate(std::int64_t) {
  return Error{ErrorCode::kUnsupported, "this llmprof was built without CUDA", ""};
}
PinnedBuffer::PinnedBuffer(PinnedBuffer&&) noexcept = default;
PinnedBuffer::~PinnedBuffer() = default;

}  // namespace llmprof::bench::cuda
