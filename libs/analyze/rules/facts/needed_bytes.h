#pragma once
// Bytes that kernels with hardware counters had to move at least, where the matrix product they executed is known.

#include <cstdint>
#include <string>
#include <vector>

#include "trace/run.h"

namespace llmprof::analyze {

struct NeededBytes {
  std::string kernel;
  std::int64_t launches = 0;  // with counters and a known product
  double bytes = 0;           // operands and results of these, each once
};

Result<std::vector<NeededBytes>> needed_bytes(const trace::Run& run);

}  // namespace llmprof::analyze
