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

// Whether a measured peak can be true: a device does not exceed what its vendor computed from its units and its clock.

// What the catalogue says of this quantity and type, at the clock it is quoted at; nullptr if nothing. The plain cores'
// float32 of NVIDIA's data sheets is their "float32".
const Figure* spec_of(const Peak& peak, const DeviceSpec* spec);

// Why this peak is impossible; "" if it is not, or if nothing is known to judge by. FLOP/s are judged at the highest
// clock the device reports, as sheets quote them at a lower one; bandwidths as they stand.
std::string above_spec(const Peak& peak, const DeviceSpec* spec, const Device& device);

}  // namespace llmprof::hw
