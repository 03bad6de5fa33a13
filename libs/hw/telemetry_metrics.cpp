#include "hw/telemetry_metrics.h"

#include <cstddef>

namespace llmprof::hw {
namespace {

constexpr Metric kMetrics[] = {
#define LLMPROF_METRIC_ROW(id, its_name, its_unit, its_meaning, ...) \
  {.name = its_name, .unit = its_unit, .meaning = its_meaning __VA_OPT__(, ) __VA_ARGS__},
    LLMPROF_METRICS(LLMPROF_METRIC_ROW)
#undef LLMPROF_METRIC_ROW
};

constexpr ClockLimit kClockLimits[] = {
    {0x02, "application clocks are set"},   {0x04, "power limit"},      {0x08, "hardware slowdown"},
    {0x10, "synchronised with other GPUs"}, {0x20, "too hot"},          {0x40, "too hot, slowed down by hardware"},
    {0x80, "external power brake"},         {0x100, "display's clocks"}};

}  // namespace

const Metric& info_of(MetricId id) { return kMetrics[static_cast<std::size_t>(id)]; }
std::span<const Metric> metrics() { return kMetrics; }

const Metric* find_metric(std::string_view name) {
  for (const Metric& metric : kMetrics) {
    if (metric.name == name) return &metric;
  }
  return nullptr;
}

std::span<const ClockLimit> clock_limits() { return kClockLimits; }

}  // namespace llmprof::hw
