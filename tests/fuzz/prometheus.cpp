// Prometheus text and OpenMetrics. The first seed is cut from a real exporter.

#include "import_fuzz.h"
#include "importers/prometheus/scrape.h"

namespace llmprof::fuzz {
namespace {

void run(std::string_view input) {
  check_importer("prometheus", input);
  importers::MemorySink sink;
  importers::Input content = importers::Input::of_text("input", std::string(input));
  if (!importers::find_importer("prometheus")->parse(content, sink)) return;
  sink.flush();
  for (const auto& row : sink.rows<trace::MetricRow>()) {
    require(std::isfinite(row.value) && row.name.id != 0 && row.kind.id != 0 && (!row.ts_ns || *row.ts_ns >= 0));
    base::label_value(sink.text(row.labels), "le");
  }
  for (const auto& row : sink.rows<trace::TelemetryRow>()) require(std::isfinite(row.value) && row.device_id > 0);
}

std::vector<std::string> seeds() {
  return {
      "# HELP go_gc_duration_seconds A summary of the pause duration of garbage collection cycles.\n"
      "# TYPE go_gc_duration_seconds summary\ngo_gc_duration_seconds{quantile=\"0.25\"} 0\n"
      "go_gc_duration_seconds_sum 0\n# TYPE node_cpu_seconds_total counter\n"
      "node_cpu_seconds_total{cpu=\"0\",mode=\"idle\"} 17896.06\nnode_time_seconds 1.7947724375492845e+09\n",
      "# TYPE lat histogram\n# UNIT lat seconds\nlat_bucket{le=\"+Inf\"} 8 1794770650.678 # {trace_id=\"x\"} 0.067\n"
      "# EOF\n",
      "DCGM_FI_DEV_POWER_USAGE{gpu=\"3\",UUID=\"GPU-1\",modelName=\"NVIDIA H100\"} 412.5 1794770650678\n{A}0\n#\n"};
}

std::vector<std::string> dictionary() {
  return {"# TYPE ",
          "# HELP ",
          "# UNIT ",
          "# EOF",
          "{",
          "}",
          "=\"",
          "\",",
          "NaN",
          "+Inf",
          "1e400",
          "\\\"",
          "\\n",
          "\r\n",
          "_bucket",
          "_total",
          " # {",
          "DCGM_FI_DEV_GPU_UTIL",
          "nv_gpu_utilization",
          "gpu_uuid"};
}

}  // namespace

const Target kTarget{run, seeds, dictionary};

}  // namespace llmprof::fuzz
