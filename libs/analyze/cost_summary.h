#pragma once
// What recording itself cost. Every report states it.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace llmprof::analyze {

struct StageCost {
  std::string stage;
  std::int64_t range_events = 0, gemm_events = 0;
  std::optional<double> delay_ns;  // events times the measured cost of one
  std::optional<double> share;     // of the stage's time
  bool flagged = false;            // more than 1 %
};

struct CollectorCost {
  std::int64_t range_events = 0, gemm_events = 0;
  std::int64_t log_bytes = 0;
  std::int64_t writer_cpu_ns = 0;                       // of the collector's threads in the processes
  std::int64_t recorder_cpu_ns = 0;                     // of llmprof beside them
  std::optional<double> range_event_ns, gemm_event_ns;  // measured on this machine
  std::vector<StageCost> stages;
  std::string why;  // why something above is unknown
};

}  // namespace llmprof::analyze
