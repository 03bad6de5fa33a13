#pragma once
// Copies and collectives of steps, and how much of them ran while no kernel computed.

#include <cstdint>
#include <string>
#include <vector>

#include "analyze/summary.h"
#include "trace/run.h"

namespace llmprof::analyze {

struct Transfers {
  std::int64_t count = 0, bytes = 0;
  std::int64_t time_ns = 0;     // union per device
  std::int64_t exposed_ns = 0;  // of that, with no other kernel executing on the device
  std::int64_t pageable = 0;    // copies of memory that is not pinned
};

struct StageOverlap {
  std::string stage;
  Transfers copies, collectives;  // between host and device or devices; collectives of communication libraries
};

// Stages load and warm-up are left out. Where all transfers together take less than 1 % of every
// stage, `exposed_ns` is `time_ns`: nothing is gained by looking closer.
Result<std::vector<StageOverlap>> overlaps(const trace::Run& run, const Summary& summary);

}  // namespace llmprof::analyze
