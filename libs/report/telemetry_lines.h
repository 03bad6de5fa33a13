#pragma once
// Readings of devices as lines: CSV, JSON, or a table for the terminal. Every line holds the latest reading of each
// metric, because they are not all read equally often. Where energy is read more often than power, power is what the
// energy grew by since the reading before.

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "base/result.h"
#include "hw/telemetry/telemetry.h"
#include "trace/run.h"

namespace llmprof::report {

class TelemetryNow {
 public:
  void add(const hw::TelemetryDevice& device);
  void take(const hw::Reading& reading);  // of a device that was not added: ignored

  struct Device {
    hw::TelemetryDevice device;
    std::array<std::optional<double>, static_cast<std::size_t>(hw::MetricId::kCount)> values;
    std::map<std::uint32_t, double> process_memory;  // pid -> bytes
    std::uint64_t processes_ns = 0;                  // when they were read
    std::uint64_t power_ns = 0, energy_ns = 0;       // the same
    std::optional<double> value(hw::MetricId metric) const { return values[static_cast<std::size_t>(metric)]; }
  };
  const std::vector<Device>& devices() const { return devices_; }
  bool any() const;  // something was read

 private:
  std::vector<Device> devices_;
};

// The columns of GPUs, and those of CPUs, which have others; `device` is the last one where there are several.
std::string telemetry_csv_header(const TelemetryNow& now);
// A line per device. `wall_s`: seconds since 1970; the line has it as ISO 8601, UTC.
std::string telemetry_csv(const TelemetryNow& now, double wall_s);
// A line per device.
std::string telemetry_json(const TelemetryNow& now, double wall_s);
std::string telemetry_table(const TelemetryNow& now);

// "power limit, too hot": what keeps the clock down, of the bits of clock_limits; "" nothing.
std::string clock_limit_words(double bits);

// What was read of devices while a run was recorded, as if it were read now.

// A line per reading of the power, which is read most often. `wall_s`: seconds since 1970, or of the run's clock where
// that is not known. False: no more lines are wanted.
using TelemetryLine = std::function<bool(const TelemetryNow& now, double wall_s)>;

struct ReplayPart {
  std::optional<std::uint32_t> device;           // as nvidia-smi counts them; none: all
  std::optional<std::int64_t> begin_ns, end_ns;  // on the clock of the run
};

// kNotFound if the run has no readings.
Result<void> replay_telemetry(const trace::Run& run, const ReplayPart& part, const TelemetryLine& line);

}  // namespace llmprof::report
