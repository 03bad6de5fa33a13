#include "analyze/measures/totals_findings.h"

#include "analyze/questions.h"
#include "analyze/rows_of.h"

namespace llmprof::analyze {

namespace {

design::Roof roof_of(const AnalysisContext& analysis) {
  design::Roof roof;
  if (analysis.devices.empty()) {
    roof.why = "the totals do not name a device; llmprof model NAME --device DEVICE --measured FILE takes one";
    return roof;
  }
  const DeviceCard& device = analysis.devices.front();
  roof.device = device.name;
  roof.memory_bytes = static_cast<double>(device.memory_bytes);
  roof.on_chip_bytes = device.cache_bytes;
  for (const PeakRate& peak : analysis.peaks) {
    if (peak.device_id == analysis.device_ids.front())
      roof.peaks.push_back({peak.quantity, peak.type, peak.value, "", peak.source, peak.method});
  }
  return roof;
}

std::optional<double> weights_in_memory(const Summary& summary) {
  if (summary.device_memory.devices.size() != 1) return std::nullopt;
  const DeviceMemory& memory = summary.device_memory.devices.front();
  if (!memory.driver_peak_bytes || !memory.driver_first_bytes) return std::nullopt;
  const auto grown = static_cast<double>(*memory.driver_peak_bytes - *memory.driver_first_bytes);
  return grown > 0 ? std::optional(grown) : std::nullopt;
}

}  // namespace

Result<MeasuredTable> totals_table(const trace::Run& run) {
  LLMPROF_LET(const std::vector<Total> totals, ask_rows<Total>(run, "totals"));
  MeasuredTable table;
  for (const Total& row : totals) {
    if (row.kind == "total") {
      table.cpu_total_ns = row.self_host_ns;
      table.device_total_ns = row.self_device_ns;
      continue;
    }
    MeasuredRow one;
    one.name = row.name;
    one.calls = row.calls.value_or(0);
    one.self_cpu_ns = row.self_host_ns, one.cpu_ns = row.host_ns;
    one.self_device_ns = row.self_device_ns, one.device_ns = row.device_ns;
    one.flops = row.flops;
    if (one.device_ns) table.device = "CUDA";
    table.rows.push_back(std::move(one));
  }
  return table;
}

Result<std::optional<MeasuredFindings>> totals_findings(const trace::Run& run, const AnalysisContext& analysis,
                                                        const Summary& summary) {
  if (!analysis.model) return std::optional<MeasuredFindings>();
  LLMPROF_LET(const MeasuredTable table, totals_table(run));
  if (table.rows.empty()) return std::optional<MeasuredFindings>();
  return std::optional(explain(analysis.model->config(), table, weights_in_memory(summary), roof_of(analysis)));
}

}  // namespace llmprof::analyze
