#pragma once
// Memory of devices that is allocated and freed inside steps.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trace/run.h"

namespace llmprof::analyze {

struct StageAllocations {
  std::string stage;
  std::int64_t steps = 0;                                 // of the stage, the first of each process left out
  std::int64_t steps_allocating = 0;                      // of these, with an allocation or a release of device memory
  std::int64_t allocations = 0, releases = 0, bytes = 0;  // in them
  std::optional<std::int64_t> calls_ns;  // in calls that allocate or free; nullopt: calls were not recorded
};

struct AllocationFacts {
  std::int64_t recorded = 0;  // allocations of device memory in the run, tensors of a memory snapshot left out
  std::vector<StageAllocations> stages;
};

Result<AllocationFacts> allocation_facts(const trace::Run& run);

}  // namespace llmprof::analyze
