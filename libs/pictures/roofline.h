#pragma once
// Stages, operators, modules and kernels as points under the roofs.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyze/summary.h"
#include "base/result.h"
#include "trace/run.h"

namespace llmprof::pictures {

struct RooflinePoint {
  std::string kind;  // "stage", "operator", "module", "kernel"
  std::string name, stage;
  double intensity = 0;  // FLOP per byte of memory, or of the cache that `level` names
  double flops_per_s = 0;
  double time_ns = 0;  // in the run
  std::string source;  // of FLOPs and bytes: "analytic", "shapes", "counters"
  std::string level;   // whose bytes counters counted: "dram", "l2", "l1"; "" bytes that must move
};
struct Roof {
  std::string name;                                // "bfloat16", "read bandwidth"
  std::optional<double> flops_per_s, bytes_per_s;  // one of them
  std::string source;                              // "measured", "spec"
};
struct Roofline {
  std::string device;
  std::vector<Roof> roofs;
  std::vector<RooflinePoint> points;  // most time first, 300 at most
  std::string why;                    // why there are none
};
Result<Roofline> roofline(const trace::Run& run, const analyze::Summary& summary);

}  // namespace llmprof::pictures
