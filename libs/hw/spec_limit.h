#pragma once
// Whether a measured peak can be true: a device does not exceed what its vendor computed from its units and its clock.

#include <string>

#include "hw/catalog.h"
#include "hw/device.h"
#include "hw/peaks.h"

namespace llmprof::hw {

// What the catalogue says of this quantity and type, at the clock it is quoted at; nullptr if nothing. The plain cores'
// float32 of NVIDIA's data sheets is their "float32".
const Figure* spec_of(const Peak& peak, const DeviceSpec* spec);

// Why this peak is impossible; "" if it is not, or if nothing is known to judge by. FLOP/s are judged at the highest
// clock the device reports, as sheets quote them at a lower one; bandwidths as they stand.
std::string above_spec(const Peak& peak, const DeviceSpec* spec, const Device& device);

}  // namespace llmprof::hw
