#pragma once
// What can be read of a device while it works, each metric with its name, unit and meaning: the one table of them.
// Runs store the names, docs/format/telemetry.md lists them; renaming one breaks both.

#include <cstdint>
#include <span>
#include <string_view>

namespace llmprof::hw {

inline constexpr double kMib = 1024.0 * 1024.0;

// Enumerator, name, unit ("" for plain numbers), meaning, and how NVML gives it where one number says that: `gpm`, the
// number of its GPM metric; `field`, of its field value (an answer of 0: there is no sensor); `factor`, from NVML's
// unit to ours. Such a metric is this row and nothing else; others are read in telemetry_nvml.cpp.
#define LLMPROF_METRICS(X)                                                                                          \
  X(kPower, "power_w", "W", "Power drawn now, by the device as a whole.")                                           \
  X(kEnergy, "energy_j", "J",                                                                                       \
    "Energy counter: only differences mean something. Starts again when the driver is reloaded.")                   \
  X(kPowerLimit, "power_limit_w", "W", "Power the device is held to.")                                              \
  X(kSmClock, "sm_clock_mhz", "MHz", "Clock of the multiprocessors.")                                               \
  X(kMemoryClock, "memory_clock_mhz", "MHz", "Clock of the device's memory.")                                       \
  X(kTemperature, "temperature_c", "°C", "Of the chip.")                                                            \
  X(kMemoryTemperature, "memory_temperature_c", "°C", "Of the device's memory.", .field = 82)                       \
  X(kGpuUtilization, "gpu_utilization", "%",                                                                        \
    "Of the last moments (up to 1 s), in which at least one kernel ran. Not how full it was.")                      \
  X(kMemoryUtilization, "memory_utilization", "%",                                                                  \
    "Of the last moments, in which memory was read or written. Not its bandwidth.")                                 \
  X(kMemoryUsed, "memory_used_bytes", "B", "Memory taken on the device, by all programs and the driver.")           \
  X(kMemoryTotal, "memory_total_bytes", "B", "Memory of the device.")                                               \
  X(kProcessMemory, "process_memory_bytes", "B", "Memory taken on the device by one process.")                      \
  X(kPerformanceState, "performance_state", "", "0 is the fastest, 15 the slowest.")                                \
  X(kClockLimits, "clock_limits", "bits", "Why the clock is not higher, as NVML's clock event reasons.")            \
  X(kPcieGeneration, "pcie_generation", "", "Generation of the PCIe link as it runs now.")                          \
  X(kPcieWidth, "pcie_width", "lanes", "Lanes of the PCIe link as it runs now.")                                    \
  X(kPcieSent, "pcie_sent_bytes_per_s", "B/s", "From the device over PCIe.", .gpm = 20, .factor = kMib)             \
  X(kPcieReceived, "pcie_received_bytes_per_s", "B/s", "To the device over PCIe.", .gpm = 21, .factor = kMib)       \
  X(kSmActive, "sm_active", "%", "Time x multiprocessors with at least one warp (GPM).", .gpm = 2)                  \
  X(kSmOccupancy, "sm_occupancy", "%", "Warps resident, of those that fit (GPM).", .gpm = 3)                        \
  X(kTensorActive, "tensor_active", "%", "Time x multiprocessors with the tensor units at work (GPM).", .gpm = 5)   \
  X(kDramActive, "dram_active", "%", "Bandwidth of the device's memory, of its theoretical peak (GPM).", .gpm = 10) \
  X(kFp64Active, "fp64_active", "%", "Time x multiprocessors with the float64 units at work (GPM).", .gpm = 11)     \
  X(kFp32Active, "fp32_active", "%", "Time x multiprocessors with the float32 units at work (GPM).", .gpm = 12)     \
  X(kFp16Active, "fp16_active", "%",                                                                                \
    "Time x multiprocessors with the float16 units at work, tensor units apart (GPM).", .gpm = 13)                  \
  X(kNvlinkSent, "nvlink_sent_bytes_per_s", "B/s", "From the device over all NVLinks (GPM).", .gpm = 61,            \
    .factor = kMib)                                                                                                 \
  X(kNvlinkReceived, "nvlink_received_bytes_per_s", "B/s", "To the device over all NVLinks (GPM).", .gpm = 60,      \
    .factor = kMib)                                                                                                 \
  X(kCpuUtilization, "cpu_utilization", "%", "Time that the CPUs were not idle, of all CPUs.")                      \
  X(kCpuClock, "cpu_clock_mhz", "MHz", "Clock of the CPUs, their mean.")                                            \
  X(kSamplerCpu, "sampler_cpu_s", "s", "CPU time that reading all this took so far.")

enum class MetricId : std::uint8_t {
#define LLMPROF_METRIC_ID(id, ...) id,
  LLMPROF_METRICS(LLMPROF_METRIC_ID)
#undef LLMPROF_METRIC_ID
      kCount
};

struct Metric {
  std::string_view name, unit, meaning;
  unsigned gpm = 0, field = 0;
  double factor = 1;
};

const Metric& info_of(MetricId id);
std::span<const Metric> metrics();                 // in the order of MetricId
const Metric* find_metric(std::string_view name);  // nullptr: no such metric

// The bits of `clock_limits`, in words; an idle GPU (bit 0) is no limit.
struct ClockLimit {
  std::uint64_t bit;
  std::string_view words;
};
std::span<const ClockLimit> clock_limits();

}  // namespace llmprof::hw
