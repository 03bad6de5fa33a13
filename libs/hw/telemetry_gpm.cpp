#include "hw/telemetry_gpm.h"

#include <cmath>
#include <utility>

namespace llmprof::hw {
namespace {

constexpr std::uint64_t kLeastApartNs = 100'000'000;
constexpr unsigned kVersion = 1;

bool supported(const NvmlTelemetryApi& nvml, NvmlDevice* device) {
  if (nvml.gpm_support == nullptr || nvml.gpm_allocate == nullptr || nvml.gpm_sample == nullptr ||
      nvml.gpm_metrics == nullptr) {
    return false;
  }
  NvmlGpmSupport support{kVersion, 0};
  return nvml.gpm_support(device, &support) == kNvmlSuccess && support.supported != 0;
}

}  // namespace

GpmReader::GpmReader(const NvmlTelemetryApi& nvml, NvmlGpu& gpu) : nvml_(nvml) {
  if (!supported(nvml, gpu.handle)) return;
  for (void*& sample : samples_) {
    if (nvml.gpm_allocate(&sample) != kNvmlSuccess) sample = nullptr;
  }
  if (samples_[0] == nullptr) samples_[1] = nullptr;
}

void GpmReader::read(NvmlCalls& calls, NvmlGpu& gpu, std::vector<Reading>& into) {
  if (!on()) return;
  if (newest_ns_ != 0 && raw_now_ns() - newest_ns_ < kLeastApartNs) return;
  const int next = 1 - newest_;
  if (!calls.ask(gpu, NvmlCall::kGpmSample, nvml_.gpm_sample, gpu.handle, samples_[next])) {
    newest_ns_ = 0;  // the buffer may be half written
    return;
  }
  const std::uint64_t before_ns = std::exchange(newest_ns_, calls.middle_ns());
  const int before = std::exchange(newest_, next);
  if (before_ns == 0) return;
  NvmlGpmMetrics metrics{};
  metrics.version = kVersion;
  metrics.first = samples_[before];
  metrics.second = samples_[next];
  std::vector<MetricId> asked;
  for (std::size_t i = 0; i < hw::metrics().size(); ++i) {
    if (hw::metrics()[i].gpm == 0) continue;
    metrics.metrics[metrics.count++].id = hw::metrics()[i].gpm;
    asked.push_back(static_cast<MetricId>(i));
  }
  if (!calls.ask(gpu, NvmlCall::kGpmMetrics, nvml_.gpm_metrics, &metrics)) return;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const NvmlGpmMetric& metric = metrics.metrics[i];
    if (metric.status != kNvmlSuccess || !std::isfinite(metric.value)) continue;
    into.push_back({asked[i], gpu.device, 0, newest_ns_, metric.value * info_of(asked[i]).factor});
  }
}

}  // namespace llmprof::hw
