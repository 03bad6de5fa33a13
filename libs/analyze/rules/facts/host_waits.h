#pragma once
// Calls in which the host waits for a device: what `llmprof record --gpu waits` and most imported traces bring.

#include <cstdint>
#include <string>
#include <vector>

#include "trace/run.h"

namespace llmprof::analyze {

struct StageWaits {
  std::string stage;
  std::string function;                            // that took most time
  std::int64_t calls = 0, steps = 0, time_ns = 0;  // steps: with at least one call of that function
};

struct HostWaits {
  bool recorded = false;  // calls of the device's API were recorded at all
  std::vector<StageWaits> stages;

  const StageWaits* of(std::string_view stage) const;
};

Result<HostWaits> host_waits(const trace::Run& run);

}  // namespace llmprof::analyze
