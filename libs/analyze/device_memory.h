#pragma once
// Fills DeviceMemories (device_memory_summary.h) from allocations and readings of memory.

#include "analyze/device_memory_summary.h"
#include "base/result.h"
#include "trace/run.h"

namespace llmprof::analyze {

struct MemoryChange {
  std::int64_t ts_ns = 0, bytes = 0;  // negative: freed
};
// What is allocated after each change. Of changes at the same time, those that free come first.
std::vector<MemoryPoint> allocated_over_time(std::vector<MemoryChange> changes);

Result<DeviceMemories> device_memories(const trace::Run& run);

}  // namespace llmprof::analyze
