#pragma once
// Memory of devices over time: by the allocations of the run, and by what the driver says. Filled by analyze, laid out
// by report.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyze/host_summary.h"

namespace llmprof::analyze {

// Allocations that were there at the peak, made in the same ranges by the same function.
struct AllocationGroup {
  std::string ranges;    // "decode › layers.3.mlp", outermost first; "" none
  std::string function;  // innermost Python function of the stack, else the innermost function; "" no stack
  std::string kind;      // "device", "managed", "pool", "mapped"
  std::int64_t allocations = 0, bytes = 0, largest_bytes = 0;
  std::int64_t all_allocations = 0;  // that were there, of all groups
  double share = 0;                  // of the peak
};

struct ProcessDeviceMemory {
  std::string name;
  std::int64_t pid = 0, peak_bytes = 0, peak_ns = 0;
  std::string source;  // "allocations", "driver"
};

struct DeviceMemory {
  std::int64_t device_id = 0;
  std::string name;
  std::int64_t total_bytes = 0;  // of the device; 0 unknown
  // By allocations that were recorded.
  std::int64_t allocations = 0, never_freed = 0, never_freed_bytes = 0;
  std::int64_t peak_bytes = 0, peak_ns = 0;
  std::vector<MemoryPoint> over_time;    // thinned; rss_bytes is memory of the device
  std::vector<OpenRanges> open_ranges;   // at the peak
  std::vector<AllocationGroup> at_peak;  // most bytes first; of the largest allocations
  std::int64_t at_peak_allocations = 0;  // all that were there
  // By the driver: all programs and its own.
  std::optional<std::int64_t> driver_peak_bytes, driver_peak_ns, driver_first_bytes;
  std::vector<MemoryPoint> driver_over_time;  // thinned
  std::vector<OpenRanges> driver_open_ranges;
  std::vector<ProcessDeviceMemory> processes;  // most first
};

struct DeviceMemories {
  std::vector<DeviceMemory> devices;
  bool caching_allocator = false;  // PyTorch: allocations are segments that it divides among tensors by itself
};

}  // namespace llmprof::analyze
