#pragma once
// Metrics of exporters that are readings of a GPU, as we name them: NVIDIA's DCGM exporter and Triton. From their
// documentation; not tried with a real server.

#include <string_view>

#include "hw/telemetry_metrics.h"

namespace llmprof::importers {

struct GpuMetric {
  std::string_view name;
  hw::MetricId metric;
  double factor = 1;  // to the unit of the metric
};

const GpuMetric* find_gpu_metric(std::string_view name);  // nullptr: none

}  // namespace llmprof::importers
