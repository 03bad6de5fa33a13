#include "bench/cuda/pinned.h"

#include <utility>

#include "bench/cuda/driver.h"

namespace llmprof::bench::cuda {

Result<PinnedBuffer> PinnedBuffer::allocate(std::int64_t bytes) {
  if (!driver()) return driver().error();
  void* data = nullptr;
  LLMPROF_TRY(checked(driver()->host_allocate(&data, static_cast<std::size_t>(bytes), 0), "cuMemHostAlloc"));
  return PinnedBuffer(data);
}

PinnedBuffer::PinnedBuffer(PinnedBuffer&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}

PinnedBuffer::~PinnedBuffer() {
  if (data_ != nullptr) (void)driver()->host_free(data_);
}

}  // namespace llmprof::bench::cuda
