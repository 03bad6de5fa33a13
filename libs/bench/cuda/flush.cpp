#include "bench/cuda/flush.h"

#include <algorithm>

namespace llmprof::bench::cuda {
namespace {

constexpr std::int64_t kUnknownCacheBytes = std::int64_t{64} << 20;
constexpr std::int64_t kPackBytes = 16;

}  // namespace

Result<CacheFlush> CacheFlush::create(Context& context) {
  const std::int64_t cache = context.properties().l2_bytes > 0 ? context.properties().l2_bytes : kUnknownCacheBytes;
  CacheFlush flush;
  flush.context_ = &context;
  LLMPROF_LET(flush.buffer_, context.allocate(2 * cache));
  LLMPROF_TRY(context.set_bytes(flush.buffer_.pointer(), 0, flush.buffer_.bytes()));
  return flush;
}

Result<void> CacheFlush::enqueue() {
  const std::int64_t packs = buffer_.bytes() / kPackBytes;
  const Launch launch{.grid_x = std::max<std::int64_t>(context_->properties().multiprocessors, 1) * 4, .block_x = 512};
  return context_->launch("llmprof_timing_flush", launch, {buffer_.pointer(), packs});
}

}  // namespace llmprof::bench::cuda
