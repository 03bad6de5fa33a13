#pragma once
// From a name to a device with peaks: what was measured here first, else what the catalogue says.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "hw/catalog.h"
#include "hw/device.h"
#include "hw/peaks.h"

namespace llmprof::hw {

struct DeviceAndPeaks {
  Device device;
  std::vector<Peak> peaks;           // empty: unknown
  const DeviceSpec* spec = nullptr;  // its entry in the catalogue; nullptr: none
  bool here = false;                 // a device of this machine
};

// Measured peaks, and of the catalogue's those that were not measured.
std::vector<Peak> with_spec_peaks(const Device& device, std::vector<Peak> measured);

// What is known without measuring: cached measurements and the catalogue.
std::vector<Peak> known_peaks(const Device& device);

// The CPU, then the GPUs in the order of the driver.
std::vector<Device> devices_here();

// "" the best device of this machine (its first GPU, else its CPU), "cpu", "gpu", the number of a GPU, the name of a
// device of this machine, or a name of the catalogue. An unknown name is an error with suggestions.
Result<DeviceAndPeaks> resolve_device(const std::string& name);
Result<DeviceAndPeaks> resolve_device(const std::string& name, const std::vector<Device>& here);

}  // namespace llmprof::hw
