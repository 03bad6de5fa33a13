#pragma once
// A device as people read it, and as JSON.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "hw/catalog.h"
#include "hw/device.h"
#include "hw/peaks.h"

namespace llmprof::hw {

// FLOP per byte above which arithmetic, not memory, is the limit: peak FLOP/s of the type / peak bandwidth.
std::optional<double> ridge(const std::vector<Peak>& peaks, std::string_view type);

// A few lines, at most 100 columns wide. Without peaks it says how to get them.
std::string device_card(const Device& device, const std::vector<Peak>& peaks);
base::Json device_json(const Device& device, const std::vector<Peak>& peaks);

// The catalogue as people read it, and as JSON: a table of all devices, and one device with the source of every number.

// One line per device; numbers that were not verified end in '?'.
std::string catalog_table(std::span<const DeviceSpec> specs);
std::string spec_card(const DeviceSpec& spec);
base::Json spec_json(const DeviceSpec& spec);

}  // namespace llmprof::hw
