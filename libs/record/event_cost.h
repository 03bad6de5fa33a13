#pragma once
// What recording one event costs the thread that raises it, on this machine: measured once per machine and version, in
// a process of its own that loads the collector as a program would.

#include <optional>
#include <string>

#include "base/result.h"
#include "hw/device.h"

namespace llmprof::record {

struct EventCost {
  double range_ns = 0;  // one range event of include/llmprof/annotate.h: half a push and pop
  double gemm_ns = 0;   // the collector's part of one hooked BLAS call
};

// Kept beside the peaks.
std::optional<EventCost> cached_event_cost(const hw::Device& cpu);
Result<void> store_event_cost(const hw::Device& cpu, const EventCost& cost);

// About 0.1 s. `library_folder` holds libllmprof_inject.so.
Result<EventCost> measure_event_cost(const std::string& library_folder);

}  // namespace llmprof::record
