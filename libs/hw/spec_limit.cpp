#include "hw/spec_limit.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/human.h"

namespace llmprof::hw {
namespace {

constexpr double kRounding = 1.01;  // sheets round: 989.4 to 989, 66.9 to 67

}  // namespace

const Figure* spec_of(const Peak& peak, const DeviceSpec* spec) {
  if (spec == nullptr) return nullptr;
  if (peak.quantity == "bandwidth") {
    return is_memory_stream(peak.type) ? spec->figure("bandwidth") : nullptr;
  }
  if (peak.quantity != "flops") return nullptr;
  if (const Figure* figure = spec->peak(peak.type)) return figure;
  return peak.type == "float32_vector" && spec->vendor == "NVIDIA" ? spec->peak("float32") : nullptr;
}

std::string above_spec(const Peak& peak, const DeviceSpec* spec, const Device& device) {
  const Figure* figure = spec_of(peak, spec);
  if (figure == nullptr || !figure->verified()) return "";
  double limit = figure->value * kRounding;
  std::string at;
  const Figure* clock = spec->figure("clock");
  if (peak.quantity == "flops" && clock != nullptr && device.clock_mhz) {
    limit *= std::max(1.0, *device.clock_mhz / clock->value);
    at = fmt::format(" at {:.0f} MHz, {} at the {:.0f} MHz it may reach", clock->value,
                     base::human_rate(limit / kRounding, peak.unit.c_str()), *device.clock_mhz);
  }
  if (peak.value <= limit) return "";
  return fmt::format("measured {}, which is more than the device can do ({}{}: {}): not believed, not stored",
                     base::human_rate(peak.value, peak.unit.c_str()),
                     base::human_rate(figure->value, figure->unit.c_str()), at, figure->source);
}

}  // namespace llmprof::hw
