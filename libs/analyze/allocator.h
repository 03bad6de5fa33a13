#pragma once
// Fills Allocators (allocator_summary.h) from memory snapshots and memory events of a framework.

#include "analyze/allocator_summary.h"
#include "base/result.h"
#include "trace/run.h"

namespace llmprof::analyze {

// The value of a curve at a moment: that of its last point up to then.
std::optional<std::int64_t> value_at(const std::vector<MemoryPoint>& points, std::int64_t ts_ns);

Result<Allocators> allocators(const trace::Run& run);

}  // namespace llmprof::analyze
