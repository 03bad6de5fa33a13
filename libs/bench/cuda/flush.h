#pragma once
// Empties the L2 cache of what an operator left there: a buffer of twice its size is read through it. Read, not
// written: lines that were written go back to memory while the next kernel runs, and that would be charged to it
// (measured on an H200: reading 30 MB takes 11.5 us after this, 14.5 us after writing as much, 7.9 us from the cache; a
// buffer of four times the cache changes nothing).

#include "base/result.h"
#include "bench/cuda/context.h"

namespace llmprof::bench::cuda {

class CacheFlush {
 public:
  static Result<CacheFlush> create(Context& context);
  Result<void> enqueue();

 private:
  Context* context_ = nullptr;
  Buffer buffer_;
};

}  // namespace llmprof::bench::cuda
