#pragma once
// Fills Metrics (metrics_summary.h) from the table metric.

#include <vector>

#include "analyze/metrics_summary.h"
#include "base/result.h"
#include "trace/run.h"

namespace llmprof::analyze {

struct Bucket {
  double bound = 0;  // values up to here; the last is infinite
  double count = 0;  // of all values up to here
};
// `buckets` in order of their bounds. Inside a bucket values are taken as evenly spread; the first begins at 0.
MetricQuantile quantile_of(const std::vector<Bucket>& buckets, double fraction);

Result<Metrics> server_metrics(const trace::Run& run);

}  // namespace llmprof::analyze
