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

constexpr std::array<Metric, static_cast<std::size_t>(MetricId::kCount)> kMetrics{{
    {"power_w", "W", "Power drawn now, by the device as a whole."},
    {"energy_j", "J", "Energy counter: only differences mean something. Starts again when the driver is reloaded."},
    {"power_limit_w", "W", "Power the device is held to."},
    {"sm_clock_mhz", "MHz", "Clock of the multiprocessors."},
    {"memory_clock_mhz", "MHz", "Clock of the device's memory."},
    {"temperature_c", "°C", "Of the chip."},
    {"memory_temperature_c", "°C", "Of the device's memory."},
    {"gpu_utilization", "%", "Of the last moments (up to 1 s), in which at least one kernel ran. Not how full it was."},
    {"memory_utilization", "%", "Of the last moments, in which memory was read or written. Not its bandwidth."},
    {"memory_used_bytes", "B", "Memory taken on the device, by all programs and the driver."},
    {"memory_total_bytes", "B", "Memory of the device."},
    {"process_memory_bytes", "B", "Memory taken on the device by one process."},
    {"performance_state", "", "0 is the fastest, 15 the slowest."},
    {"clock_limits", "bits", "Why the clock is not higher, as NVML's clock event reasons."},
    {"pcie_generation", "", "Generation of the PCIe link as it runs now."},
    {"pcie_width", "lanes", "Lanes of the PCIe link as it runs now."},
    {"pcie_sent_bytes_per_s", "B/s", "From the device over PCIe."},
    {"pcie_received_bytes_per_s", "B/s", "To the device over PCIe."},
    {"sm_active", "%", "Time x multiprocessors with at least one warp (GPM)."},
    {"sm_occupancy", "%", "Warps resident, of those that fit (GPM)."},
    {"tensor_active", "%", "Time x multiprocessors with the tensor units at work (GPM)."},
    {"dram_active", "%", "Bandwidth of the device's memory, of its theoretical peak (GPM)."},
    {"fp64_active", "%", "Time x multiprocessors with the float64 units at work (GPM)."},
    {"fp32_active", "%", "Time x multiprocessors with the float32 units at work (GPM)."},
    {"fp16_active", "%", "Time x multiprocessors with the float16 units at work, tensor units apart (GPM)."},
    {"nvlink_sent_bytes_per_s", "B/s", "From the device over all NVLinks (GPM)."},
    {"nvlink_received_bytes_per_s", "B/s", "To the device over all NVLinks (GPM)."},
    {"cpu_utilization", "%", "Time that the CPUs were not idle, of all CPUs."},
    {"cpu_clock_mhz", "MHz", "Clock of the CPUs, their mean."},
    {"sampler_cpu_s", "s", "CPU time that reading all this took so far."},
}};

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
