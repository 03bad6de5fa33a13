#pragma once
// The points of a benchmark's run, with the rates they reached; and two such runs compared.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analyze/summary.h"
#include "base/result.h"
#include "hw/peaks.h"
#include "trace/run.h"

namespace llmprof::analyze {

struct BenchPoint {
  std::int64_t id = 0;
  std::string device, op, type, name, implementation, method, kernels, timer, cache;
  std::vector<std::pair<std::string, std::int64_t>> axes;
  std::string status;  // "measured", "skipped", "failed"
  std::string reason;
  std::int64_t samples = 0;
  std::optional<double> mean_ns, median_ns, min_ns, max_ns, stddev_ns, p5_ns, p95_ns, p99_ns, low_ns, high_ns;
  bool noisy = false;
  std::string stopped_by;
  std::int64_t throttled = 0;
  std::optional<double> clock_mhz;
  double flops = 0, read_bytes = 0, write_bytes = 0;
  std::optional<double> flops_per_s, bytes_per_s;  // of the median time
  std::optional<double> floor_ns, of_roof;         // of_roof: floor over median
  std::string bound, denominator;
  std::int64_t tensor_bytes = 0, workspace_bytes = 0, buffer_sets = 0;
  std::optional<double> error, event_ns, graph_ns;
  std::optional<std::int64_t> used_calls, used_ns;
  std::int64_t begin_ns = 0, end_ns = 0;

  bool measured() const { return status == "measured" && median_ns; }
  std::string sizes() const;  // "m=1 n=4096 k=4096"
  std::string key() const;    // operator, type, sizes, cache and implementation: the same measurement in another run
};

struct BenchResults {
  std::vector<BenchPoint> points;  // empty: the run holds no benchmark
  std::vector<DeviceCard> devices;
  std::vector<hw::Peak> peaks;  // of the first device
  std::vector<Loss> losses;
};

Result<BenchResults> bench_results(const trace::Run& run);

enum class BenchVerdict : std::uint8_t { kSame, kFaster, kSlower };
std::string_view json_name(BenchVerdict verdict);

struct BenchChange {
  BenchPoint a, b;
  double ratio = 1, low = 1, high = 1;         // median of b over median of a, with its 95 % confidence interval
  double p = 1;                                // adjusted for the number of comparisons
  BenchVerdict verdict = BenchVerdict::kSame;  // of b: slower and faster are significant and beyond the threshold
};

struct BenchComparison {
  double threshold = 0.01;
  std::vector<BenchChange> changes;        // in the order of a
  std::optional<double> ratio;             // geometric mean of the ratios
  std::vector<BenchPoint> only_a, only_b;  // points the other run does not have
  struct NotCompared {
    BenchPoint point;
    std::string why;
  };
  std::vector<NotCompared> not_compared;  // in both, not measured in one
  std::vector<std::string> confounders;   // what else differs and may be the reason: the device, its clocks, versions
};

Result<BenchComparison> compare_benches(const trace::Run& a, const trace::Run& b, double threshold);

}  // namespace llmprof::analyze
