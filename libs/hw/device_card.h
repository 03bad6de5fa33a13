#pragma once
// A device as people read it, and as JSON.

#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "hw/device.h"
#include "hw/peaks.h"

namespace llmprof::hw {

// FLOP per byte above which arithmetic, not memory, is the limit: peak FLOP/s of the type / peak bandwidth.
std::optional<double> ridge(const std::vector<Peak>& peaks, std::string_view type);

// A few lines, at most 100 columns wide. Without peaks it says how to get them.
std::string device_card(const Device& device, const std::vector<Peak>& peaks);
base::Json device_json(const Device& device, const std::vector<Peak>& peaks);

}  // namespace llmprof::hw
