#pragma once
// What the metrics of an inference server say. Filled by analyze, laid out by report.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace llmprof::analyze {

struct MetricGauge {
  std::string server, what;  // "vLLM", "requests running"
  bool share = false;        // 0 … 1, and the mean over its series; else a number, added up over them
  double last = 0, highest = 0;
};

struct MetricCounter {
  std::string server, what, unit;
  double total = 0;                  // since the server started
  std::optional<double> rate_per_s;  // between the first scrape and the last, where they carry times
};

// Interpolated inside the bucket it falls into; it lies between the bucket's bounds for certain.
struct MetricQuantile {
  double value_s = 0, low_s = 0;
  std::optional<double> high_s;  // none: in the last bucket, which has no end; value is its beginning
};

struct MetricHistogram {
  std::string server, what;
  double count = 0;
  std::optional<double> mean_s;
  MetricQuantile p50, p90, p99;
  bool between_scrapes = false;  // else since the server started
};

struct Metrics {
  std::int64_t values = 0, names = 0, known_names = 0;
  std::int64_t scrapes = 0;             // of the series that was read most often
  std::optional<std::int64_t> time_ns;  // from the first to the last; none: the scrapes carry no times
  std::vector<MetricGauge> gauges;
  std::vector<MetricCounter> counters;
  std::vector<MetricHistogram> latencies;
  std::optional<double> prefix_hit_rate;  // of the prompt tokens that were looked up
};

}  // namespace llmprof::analyze
