#include "record/cuda_devices.h"

#include <fmt/format.h>

#include <algorithm>

#include "hw/resolve.h"
#include "hw/telemetry.h"
#include "trace/run_writer.h"

namespace llmprof::record {
namespace {

void fill_in(hw::Device& known, const hw::Device& said) {
  if (known.name.empty()) known.name = said.name;
  if (known.chip.empty()) known.chip = said.chip;
  if (known.units == 0) known.units = said.units;
  if (known.memory_bytes == 0) known.memory_bytes = said.memory_bytes;
}

}  // namespace

std::string to_text(const Uuid& uuid) {
  if (!uuid.known()) return "";
  return fmt::format("GPU-{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", uuid.high >> 32, uuid.high >> 16 & 0xffff,
                     uuid.high & 0xffff, uuid.low >> 48, uuid.low & 0xffff'ffff'ffff);
}

void CudaDevices::add(const hw::Device& device, std::vector<hw::Peak> peaks, trace::Id& next_id) {
  Uuid uuid;
  hw::parse_uuid(device.uuid, uuid.high, uuid.low);
  devices_.push_back({next_id++, uuid, device, std::move(peaks)});
}

trace::Id CudaDevices::find(const Uuid& uuid, const hw::Device& device, trace::Id& next_id) {
  auto known = devices_.end();
  if (uuid.known()) {
    known = std::find_if(devices_.begin(), devices_.end(), [&](const Known& other) { return other.uuid == uuid; });
  }
  if (known == devices_.end()) {  // the first of this name that nobody has claimed
    known = std::find_if(devices_.begin(), devices_.end(), [&](const Known& other) {
      return (!other.uuid.known() || !uuid.known()) && !device.name.empty() && other.device.name == device.name;
    });
  }
  if (known == devices_.end() && devices_.size() < kMost) {
    devices_.push_back({next_id++, uuid, device, hw::with_spec_peaks(device, {})});
    return devices_.back().id;
  }
  if (known == devices_.end()) return devices_.back().id;
  if (!known->uuid.known()) known->uuid = uuid;
  fill_in(known->device, device);
  return known->id;
}

bool CudaDevices::has(const std::string& name) const {
  return std::any_of(devices_.begin(), devices_.end(), [&](const Known& known) { return known.device.name == name; });
}

void CudaDevices::write(trace::RunWriter& writer) const {
  for (const Known& known : devices_) write_device(writer, known.id, known.device, known.peaks, to_text(known.uuid));
}

void write_device(trace::RunWriter& writer, trace::Id id, const hw::Device& device, const std::vector<hw::Peak>& peaks,
                  const std::string& uuid) {
  trace::Strings& strings = writer.strings();
  const auto optional_text = [&](const std::string& text) {
    return text.empty() ? trace::Name{} : strings.intern(text);
  };
  trace::DeviceRow row;
  row.id = id;
  row.kind = strings.intern(device.kind.empty() ? "cpu" : device.kind);
  row.name = optional_text(device.name);
  row.chip = optional_text(device.chip);
  row.units = device.units;
  row.memory_bytes = device.memory_bytes;
  row.cache_bytes = device.cache_bytes;
  row.clock_mhz = device.clock_mhz;
  row.driver = optional_text(device.driver);
  row.uuid = optional_text(uuid);
  writer.add(row);
  for (const hw::Peak& peak : peaks) {
    writer.add(trace::PeakRow{id, strings.intern(peak.quantity), strings.intern(peak.type), peak.value,
                              strings.intern(peak.unit), strings.intern(peak.source), strings.intern(peak.method)});
  }
}

}  // namespace llmprof::record
