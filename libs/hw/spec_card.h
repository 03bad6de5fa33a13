#pragma once
// The catalogue as people read it, and as JSON: a table of all devices, and one device with the source of every number.

#include <span>
#include <string>

#include "base/json_fwd.h"
#include "hw/catalog.h"

namespace llmprof::hw {

// One line per device; numbers that were not verified end in '?'.
std::string catalog_table(std::span<const DeviceSpec> specs);
std::string spec_card(const DeviceSpec& spec);
base::Json spec_json(const DeviceSpec& spec);

}  // namespace llmprof::hw
