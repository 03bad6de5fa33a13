#pragma once
// The matrix products that a recorded run made, as points, with their neighbours: `llmprof bench --from RUN`.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "bench/sweep.h"
#include "trace/run.h"

namespace llmprof::bench {

struct FromRunRequest {
  std::size_t top = 10;  // shapes, those with the most time first
  bool neighbours = true;
  std::vector<Type> types;  // empty: those the run used
  Variants variants;
  DeviceKind device = DeviceKind::kCpu;
};

// gemm points: each shape that was used, followed by the same with the rows around its own.
Result<std::vector<Point>> plan_from_run(const trace::Run& run, const FromRunRequest& request);

// Row counts around m: the power of two below and above it, and the multiple of 64 below and above it; m itself is not
// among them.
std::vector<std::int64_t> neighbours_of(std::int64_t m);

}  // namespace llmprof::bench
