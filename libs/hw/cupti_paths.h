#pragma once
// Where CUPTI may be, in the order in which it is tried. LLMPROF_CUPTI names the one to take, and no other is then.

#include <string>
#include <vector>

#include "hw/system_files.h"

namespace llmprof::hw {

std::vector<std::string> cupti_paths(const SystemFiles& files);

}  // namespace llmprof::hw
