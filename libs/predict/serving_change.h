#pragma once
// A serving before and after a change, as rows by the names that `llmprof whatif --serving` has in JSON
// (libs/analyze/tables/whatif.md).

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "predict/forecast.h"

namespace llmprof::predict {

struct LatencyChange {
  std::string_view metric, statistic;  // "ttft", "mean"
  std::string label;                   // "TTFT mean"
  double before_ns = 0, before_low_ns = 0, before_high_ns = 0;
  double after_ns = 0, after_low_ns = 0, after_high_ns = 0;
  std::optional<double> ratio;  // after / before
  std::string before_interval, after_interval;
};

struct AmountChange {
  std::string_view name, unit;
  double before = 0, after = 0;
  std::optional<double> ratio;
};

struct ServingSide {
  std::int64_t kv_blocks = 0, block_tokens = 0;
  std::string blocks_source;  // "given", "rule"
  std::string stands_on;
  StepError step_error;
};

struct ServingChange {
  std::string model, device, device_after, engine, workload;
  std::vector<std::string> changes;
  std::vector<LatencyChange> latency;
  std::vector<AmountChange> amounts;
  ServingSide before, after;
  std::vector<std::string> notes;  // of both
};

ServingChange change_of(const ServingInput& before_input, const ServingForecast& before,
                        const ServingInput& after_input, const ServingForecast& after);

}  // namespace llmprof::predict
