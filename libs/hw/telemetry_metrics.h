#pragma once
// What can be read of a device while it works, each metric with its name, unit and meaning: the one table of them.
// Runs store the names, docs/format/telemetry.md lists them; renaming one breaks both.

#include <cstdint>
#include <span>
#include <string_view>

namespace llmprof::hw {

enum class MetricId : std::uint8_t {
  kPower,
  kEnergy,
  kPowerLimit,
  kSmClock,
  kMemoryClock,
  kTemperature,
  kMemoryTemperature,
  kGpuUtilization,
  kMemoryUtilization,
  kMemoryUsed,
  kMemoryTotal,
  kProcessMemory,
  kPerformanceState,
  kClockLimits,
  kPcieGeneration,
  kPcieWidth,
  kPcieSent,
  kPcieReceived,
  kSmActive,
  kSmOccupancy,
  kTensorActive,
  kDramActive,
  kFp64Active,
  kFp32Active,
  kFp16Active,
  kNvlinkSent,
  kNvlinkReceived,
  kCpuUtilization,
  kCpuClock,
  kSamplerCpu,
  kCount
};

struct Metric {
  std::string_view name;
  std::string_view unit;  // "" for plain numbers
  std::string_view meaning;
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
