#pragma once
// What a reader of a design must know before its numbers.

#include <string>
#include <vector>

#include "analyze/design/design.h"

namespace llmprof::analyze::design {

// What turns numbers into bounds, or keeps them unknown. `weights_read_bytes`: of one pass on one device.
std::vector<std::string> caveats_of(const Design& design, const Ruler& ruler, double weights_read_bytes);
// What they rest on: conventions, devices, types.
std::vector<std::string> notes_of(const Design& design);

}  // namespace llmprof::analyze::design
