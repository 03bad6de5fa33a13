#include "analyze/counters/work.h"

#include "analyze/counters/fold.h"
#include "analyze/model/kernel_roofline.h"

namespace llmprof::analyze::counters {
namespace {

std::optional<double> ratio(const std::optional<double>& a, const std::optional<double>& b) {
  return a && b && *b > 0 ? std::optional(*a / *b) : std::nullopt;
}

}  // namespace

std::vector<hw::Peak> peaks_of(const AnalysisContext& analysis, std::int64_t device_id) {
  std::vector<hw::Peak> peaks;
  for (const PeakRate& peak : analysis.peaks) {
    if (peak.device_id == device_id)
      peaks.push_back({peak.quantity, peak.type, peak.value, "", peak.source, peak.method});
  }
  return peaks;
}

std::optional<double> l1_bytes(const Metrics& metrics) {
  const std::optional<double> asked = value_of("l1_bytes", metrics);
  return asked ? std::optional(*asked + value_of("tma_read_bytes", metrics).value_or(0)) : std::nullopt;
}

CountedWork work_of(const Metrics& metrics, double time_ns, const std::vector<hw::Peak>& peaks) {
  const KernelRoofline point = kernel_roofline({time_ns, metrics}, peaks);
  CountedWork work;
  work.flops = point.flops, work.tensor_flops = point.tensor_flops;
  work.dram_bytes = point.dram_bytes;
  work.l2_bytes = value_of("l2_bytes", metrics);
  work.l1_bytes = l1_bytes(metrics);
  if (time_ns > 0) work.time_ns = time_ns;
  work.dram_intensity = point.flops_per_byte;
  work.l2_intensity = ratio(work.flops, work.l2_bytes), work.l1_intensity = ratio(work.flops, work.l1_bytes);
  work.flops_per_s = point.flops_per_s, work.dram_bytes_per_s = point.bytes_per_s;
  work.type = point.type, work.bound = point.bound, work.of_roof = point.share_of_roof;
  return work;
}

std::optional<double> flops_of_peak(const CountedWork& work, const std::vector<hw::Peak>& peaks) {
  if (!work.flops_per_s) return std::nullopt;
  const hw::Peak* peak = peak_of_arithmetic(work.type, peaks);
  return peak != nullptr && peak->value > 0 ? std::optional(*work.flops_per_s / peak->value) : std::nullopt;
}

}  // namespace llmprof::analyze::counters
