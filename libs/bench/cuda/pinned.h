#pragma once
// Host memory that the GPU reaches directly: copies from and to it run at the bus's full rate.

#include <cstdint>

#include "base/result.h"
#include "bench/cuda/context.h"

namespace llmprof::bench::cuda {

class PinnedBuffer {
 public:
  // While a Context is open. kUnsupported when the system does not give that much.
  static Result<PinnedBuffer> allocate(std::int64_t bytes);
  PinnedBuffer(PinnedBuffer&& other) noexcept;
  PinnedBuffer& operator=(PinnedBuffer&& other) = delete;
  ~PinnedBuffer();
  void* data() const { return data_; }

 private:
  explicit PinnedBuffer(void* data) : data_(data) {}
  void* data_ = nullptr;
};

}  // namespace llmprof::bench::cuda
