#include "importers/telemetry_csv/device_readings.h"

#include <algorithm>
#include <cmath>

namespace llmprof::importers {

std::optional<trace::Id> DeviceReadings::device(const Known& known) {
  const auto same = std::ranges::find_if(devices_, [&](const Device& device) {
    if (!known.uuid.empty() || !device.uuid.empty()) return device.uuid == known.uuid;
    if (known.ordinal || device.ordinal) return device.ordinal == known.ordinal;
    return device.name == known.name;
  });
  if (same != devices_.end()) return same->id;
  if (devices_.size() >= kMaxDevices) {
    sink_.lose(trace::Loss::kInputLimit, 1, "readings of further devices");
    return std::nullopt;
  }
  trace::DeviceRow row{.id = sink_.new_id(), .kind = sink_.name(known.cpu ? "cpu" : "gpu")};
  if (!known.uuid.empty()) row.uuid = sink_.name(known.uuid);
  if (!known.name.empty()) row.name = sink_.name(known.name);
  if (!known.driver.empty()) row.driver = sink_.name(known.driver);
  row.memory_bytes = known.memory_bytes;
  row.ordinal = known.ordinal;
  sink_.add(row);
  devices_.push_back({row.id, std::string(known.uuid), std::string(known.name), known.ordinal});
  return row.id;
}

void DeviceReadings::add(trace::Id device, std::int64_t ts_ns, hw::MetricId metric, double value) {
  if (!std::isfinite(value)) return sink_.lose(trace::Loss::kInputRepaired, 1, "readings that are no finite number");
  const hw::Metric& info = hw::info_of(metric);
  trace::TelemetryRow row{.ts_ns = ts_ns, .device_id = device, .metric = sink_.name(info.name), .value = value};
  if (!info.unit.empty()) row.unit = sink_.name(info.unit);
  sink_.add(row);
  ++readings_;
  if (!first_ns_ || ts_ns < *first_ns_) first_ns_ = ts_ns;
}

}  // namespace llmprof::importers
