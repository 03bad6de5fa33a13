#pragma once
// How the host brings work to a device, per stage.

#include <cstdint>
#include <string>
#include <vector>

#include "trace/run.h"

namespace llmprof::analyze {

struct StageLaunches {
  std::string stage;
  std::int64_t launches = 0;            // kernels launched one by one; graph launches stand in Stage
  std::int64_t timed = 0, call_ns = 0;  // of these, with a known launching call; host time inside them
};

Result<std::vector<StageLaunches>> stage_launches(const trace::Run& run);

}  // namespace llmprof::analyze
