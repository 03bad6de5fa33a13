#include "hw/telemetry.h"

#include <time.h>
#include <array>
#include <cstddef>

#include "hw/telemetry_metrics.h"

namespace llmprof::hw {

std::string_view name_of(ReadGroup group) {
  static constexpr std::array<std::string_view, kReadGroups> kNames{
      "power and energy", "clocks, temperature and utilisation", "activity", "memory of processes", "limits"};
  return kNames[static_cast<std::size_t>(group)];
}

std::uint64_t raw_now_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC_RAW, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(time.tv_nsec);
}

bool parse_uuid(std::string_view text, std::uint64_t& high, std::uint64_t& low) {
  if (text.starts_with("GPU-")) text.remove_prefix(4);
  std::uint64_t halves[2] = {0, 0};
  int digits = 0;
  for (const char c : text) {
    if (c == '-') continue;
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (digit < 0 || digits == 32) return false;
    std::uint64_t& half = halves[digits++ / 16];
    half = half << 4 | static_cast<std::uint64_t>(digit);
  }
  if (digits != 32) return false;
  high = halves[0];
  low = halves[1];
  return true;
}

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
