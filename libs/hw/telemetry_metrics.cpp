#include "hw/telemetry_metrics.h"

#include <array>
#include <cstddef>

namespace llmprof::hw {
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
