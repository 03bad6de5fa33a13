#include "bench/cuda/flush.h"

#include <algorithm>

namespace llmprof::bench::cuda {
namespace {

constexpr std::int64_t kUnknownCacheBytes = std::int64_t{64} << 20;
constexpr std::int64_t kPackBytes = 16;

}  // namespace

Result<CacheFlush> CacheFlush::create(Context& context, How how) {
  const std::int64_t cache = context.properties().l2_bytes > 0 ? context.properties().l2_bytes : kUnknownCacheBytes;
  CacheFlush flush;
  flush.context_ = &context;
  flush.how_ = how;
  LLMPROF_LET(flush.buffer_, context.allocate(2 * cache));
  LLMPROF_TRY(context.set_bytes(flush.buffer_.pointer(), 0, flush.buffer_.bytes()));
  return flush;
}

Result<void> CacheFlush::enqueue() {
  const std::int64_t packs = buffer_.bytes() / kPackBytes;
  const Launch launch{.grid_x = std::max<std::int64_t>(context_->properties().multiprocessors, 1) * 4, .block_x = 512};
  if (how_ != How::kRead) {
    LLMPROF_TRY(context_->launch("llmprof_timing_flush_write", launch, {buffer_.pointer(), packs, 0u}));
  }
  if (how_ != How::kWrite) {
    LLMPROF_TRY(context_->launch("llmprof_timing_flush_read", launch, {buffer_.pointer(), packs, 1u}));
  }
  return {};
}

}  // namespace llmprof::bench::cuda
