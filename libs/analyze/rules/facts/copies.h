#pragma once
// Copies between host and device, per stage, direction and kind of host memory.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "trace/run.h"

namespace llmprof::analyze {

struct StageCopies {
  std::string stage, direction, host_memory;  // "pageable", "pinned", "managed"; "" unknown
  std::int64_t copies = 0, steps = 0, bytes = 0, largest_bytes = 0, time_ns = 0;
  std::int64_t call_ns = 0;  // host time inside the calls that asked for them
};

struct HostCopies {
  std::vector<StageCopies> stages;
  std::map<std::string, double> pinned_rate;  // by direction: B/s of the fastest large copy of the run
};

Result<HostCopies> host_copies(const trace::Run& run);

}  // namespace llmprof::analyze
