#pragma once
// Empties the L2 cache of what was there: a buffer of twice its size goes through it.

#include "base/result.h"
#include "bench/cuda/context.h"

namespace llmprof::bench::cuda {

class CacheFlush {
 public:
  enum class How { kWrite, kRead, kBoth };
  static Result<CacheFlush> create(Context& context, How how = How::kBoth);
  Result<void> enqueue();

 private:
  Context* context_ = nullptr;
  Buffer buffer_;
  How how_ = How::kBoth;
};

}  // namespace llmprof::bench::cuda
