#pragma once
// Readings of devices as rows, and the cells of tables that hold them.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hw/telemetry/metrics.h"
#include "importers/sink.h"

namespace llmprof::importers {

// "118.64 W", "99 %", "P0", "0x4"; nullopt: [N/A], [Not Supported], -, empty, or no number.
std::optional<double> cell_number(std::string_view cell);
// "2026-11-17T15:50:17.123Z" in ns since 1970.
std::optional<std::int64_t> utc_time_ns(std::string_view text);
// Times without a zone are taken as those of this machine's zone (tzset was called before). ns since 1970.
std::optional<std::int64_t> local_time_ns(std::string_view date, std::string_view time_of_day);

// Readings of devices that a file names by UUID, number or product name, as rows of `telemetry` and `device`.
class DeviceReadings {
 public:
  static constexpr std::size_t kMaxDevices = 4096;

  struct Known {
    std::string_view uuid, name, driver;  // "" unknown
    std::optional<std::int64_t> ordinal;
    std::int64_t memory_bytes = 0;  // 0 unknown
    bool cpu = false;
  };

  explicit DeviceReadings(Sink& sink) : sink_(sink) {}

  // The same UUID is the same device; without one, the same number; without that, the same name. Its row is written
  // when it is first seen. nullopt: too many.
  std::optional<trace::Id> device(const Known& known);
  void add(trace::Id device, std::int64_t ts_ns, hw::MetricId metric, double value);

  std::optional<std::int64_t> first_ns() const { return first_ns_; }

 private:
  struct Device {
    trace::Id id = 0;
    std::string uuid, name;
    std::optional<std::int64_t> ordinal;
  };
  Sink& sink_;
  std::vector<Device> devices_;
  std::optional<std::int64_t> first_ns_;
};

}  // namespace llmprof::importers
