#pragma once
// What a framework's allocator did with a device's memory: what it held, what it gave out, by which stacks. Filled by
// analyze, laid out by report.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyze/host_summary.h"

namespace llmprof::analyze {

struct AllocatingStack {
  std::string stack;  // "kv_block (mem.py:12) < churn (mem.py:16)", innermost first; "" no stack
  std::int64_t allocations = 0, bytes = 0, largest_bytes = 0;
  double share = 0;  // of the bytes in use at the peak, or never freed
};

// Segments of one kind, as a snapshot shows them.
struct AllocatorPool {
  std::string kind;  // "small", "large", "large, private pool 0:3"
  std::int64_t segments = 0, bytes = 0, allocated_bytes = 0, active_bytes = 0;
  std::optional<std::int64_t> requested_bytes;
  std::int64_t free_bytes = 0;          // in none of its tensors
  std::int64_t largest_free_bytes = 0;  // one piece
  double free_share = 0;                // of bytes
  std::int64_t device_id = 0;
  std::int64_t between_bytes = 0;  // of free_bytes, in segments that hold tensors: cannot be given back
};

struct DeviceAllocator {
  std::int64_t device_id = 0;
  std::string name;  // of the device; "" unknown
  std::optional<std::int64_t> ordinal;
  // By events: what was given to the program, and what the allocator held of the device.
  std::int64_t allocations = 0, begin_ns = 0, peak_bytes = 0, peak_ns = 0;
  std::optional<std::int64_t> held_at_peak_bytes, held_peak_bytes, held_peak_ns;
  std::vector<MemoryPoint> held_over_time;  // thinned; rss_bytes is what it held
  std::vector<AllocatingStack> at_peak;     // most bytes first
  std::int64_t at_peak_allocations = 0;
  std::vector<AllocatingStack> never_freed;  // of those allocated after the first event
  std::int64_t never_freed_allocations = 0, never_freed_bytes = 0;
  // By the snapshot.
  std::vector<AllocatorPool> pools;
};

struct Allocators {
  std::vector<DeviceAllocator> devices;  // those with a snapshot, or with allocations that have stacks
  std::vector<std::string> out_of_memory;
};

}  // namespace llmprof::analyze
