#pragma once
// What the readings of devices say about a run and its stages. Filled by analyze, laid out by report.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace llmprof::analyze {

struct ClockLimitShare {
  std::string why;   // "power limit"
  double share = 0;  // of the readings in the stage
};

struct StageTelemetry {
  std::string stage;
  std::int64_t time_ns = 0;  // union of its step windows
  std::int64_t tokens = 0;
  // Of the used devices together. Of the whole device: what other programs draw on it is in it.
  std::optional<double> energy_j, energy_error_j, joules_per_token, joules_per_token_error;
  std::optional<double> power_w;  // energy / time
  std::string energy_source;      // "counter", "power"; "" unknown
  std::string energy_why;         // why it is unknown
  // Means over the readings inside its windows and over the used devices.
  std::int64_t clock_readings = 0;  // of all used devices
  std::optional<double> sm_clock_mhz, lowest_sm_clock_mhz, memory_clock_mhz, temperature_c, highest_temperature_c;
  std::string clock_why;                      // why they are unknown
  std::optional<double> slow_clock_share;     // of the readings, with the clock below kSlowClock of the reference
  std::vector<ClockLimitShare> clock_limits;  // most often first
  // GPM, 0 … 1: means over the times between two samples that lie in its windows nearly whole.
  std::int64_t activity_readings = 0;
  std::optional<double> sm_active, sm_occupancy, tensor_active, dram_active;
  std::string activity_why;
};
inline constexpr double kSlowClock = 0.9;

struct DeviceTelemetry {
  std::int64_t device_id = 0;
  std::string name;
  bool used = false;  // it is one of the devices of the job; where no kernel was recorded, all are
  std::int64_t readings = 0, begin_ns = 0, end_ns = 0;
  std::optional<double> energy_j;  // from the first reading to the last
  std::optional<double> power_w, highest_power_w, power_limit_w;
  std::optional<double> reference_clock_mhz;  // what clocks are compared with: the highest of the device
  std::optional<double> readings_per_s;       // of energy or power, whichever was read more often
  // Highest in each of equal parts of the time from the first to the last reading of it; a part without one is as the
  // part before. Empty with fewer than three readings.
  std::vector<double> power_over_time_w;
};

struct Telemetry {
  std::vector<DeviceTelemetry> devices;      // those with readings
  std::vector<StageTelemetry> stages;        // in the order of the summary; empty without readings of a used device
  std::optional<double> sampler_cpu_s;       // what reading took
  std::optional<double> sampler_core_share;  // of one core, over the time of the readings
};

}  // namespace llmprof::analyze
