#include "hw/resolve.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/human.h"
#include "base/suggest.h"

namespace llmprof::hw {

namespace {

DeviceAndPeaks of_machine(const Device& device) {
  return {device, known_peaks(device), find_device(device.name), true};
}

std::vector<Device> gpus_of(const std::vector<Device>& devices) {
  std::vector<Device> gpus;
  std::copy_if(devices.begin(), devices.end(), std::back_inserter(gpus),
               [](const Device& d) { return d.kind == "gpu"; });
  return gpus;
}

std::optional<std::size_t> number_in(std::string_view text) {
  std::size_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Error no_gpu(std::size_t index, std::size_t count) {
  return {ErrorCode::kNotFound,
          count == 0 ? "this machine has no GPU that its driver reports"
                     : fmt::format("this machine has no GPU {}: it has {}, counted from 0", index, count),
          "llmprof devices lists this machine's, llmprof devices --all those of the catalogue"};
}

Error unknown(const std::string& name) {
  return {ErrorCode::kNotFound, fmt::format("unknown device {}", name),
          base::did_you_mean(suggest(name)) + "llmprof devices --all lists the known ones"};
}

// The one device of the catalogue that a loosely written name fits; of several, the one that this machine has.
Result<const DeviceSpec*> spec_alike(const std::string& name, const std::vector<Device>& here) {
  const std::vector<const DeviceSpec*> alike = match_devices(name);
  if (alike.empty()) return unknown(name);
  if (alike.size() == 1) return alike.front();
  std::string names;
  for (const DeviceSpec* spec : alike) {
    names += (names.empty() ? "" : ", ") + spec->short_names.front();
    if (std::ranges::any_of(here, [&](const Device& device) { return find_device(device.name) == spec; })) return spec;
  }
  return Error{ErrorCode::kNotFound, fmt::format("{} fits several devices: {}", name, names),
               "give one of these names"};
}

constexpr double kRounding = 1.01;  // sheets round: 989.4 to 989, 66.9 to 67

}  // namespace

std::vector<Peak> with_spec_peaks(const Device& device, std::vector<Peak> measured) {
  const DeviceSpec* spec = device.kind == "cpu" ? nullptr : find_device(device.name);
  if (spec == nullptr) return measured;
  return merged_peaks(spec_peaks(*spec), measured);
}

std::vector<Peak> known_peaks(const Device& device) { return with_spec_peaks(device, cached_peaks(device)); }

std::vector<Device> devices_here() {
  std::vector<Device> devices{probe_cpu()};
  for (Device& gpu : probe_gpus()) devices.push_back(std::move(gpu));
  return devices;
}

Result<DeviceAndPeaks> resolve_device(const std::string& name) {
  // A name of the catalogue needs no driver, but a machine that has the device knows more about it.
  return resolve_device(name, devices_here());
}

Result<DeviceAndPeaks> resolve_device(const std::string& name, const std::vector<Device>& here) {
  const std::vector<Device> gpus = gpus_of(here);
  const auto gpu = [&](std::size_t index) -> Result<DeviceAndPeaks> {
    if (index >= gpus.size()) return no_gpu(index, gpus.size());
    return of_machine(gpus[index]);
  };
  if (name.empty() && !gpus.empty()) return gpu(0);
  if (name.empty() || name == "cpu") {
    for (const Device& device : here) {
      if (device.kind == "cpu") return of_machine(device);
    }
    return Error{ErrorCode::kNotFound, "this machine's CPU is unknown", ""};
  }
  if (name == "gpu") return gpu(0);
  if (const auto index = number_in(name)) return gpu(*index);
  const DeviceSpec* spec = find_device(name);
  for (const Device& device : here) {
    const bool meant = device.name == name || (spec != nullptr && find_device(device.name) == spec);
    if (meant) return of_machine(device);
  }
  if (spec == nullptr) {
    LLMPROF_LET(spec, spec_alike(name, here));
    return resolve_device(spec->name, here);
  }
  return DeviceAndPeaks{device_of(*spec), spec_peaks(*spec), spec, false};
}

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
