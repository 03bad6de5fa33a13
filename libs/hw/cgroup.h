#pragma once
// What the control group of this process leaves of the machine (version 1 and 2; every ancestor counts).

#include <cstdint>
#include <optional>

#include "hw/system_files.h"

namespace llmprof::hw {

struct CgroupLimits {
  std::optional<double> cpus;  // quota / period
  std::optional<std::int64_t> memory_bytes;
};

CgroupLimits cgroup_limits(const SystemFiles& files);

}  // namespace llmprof::hw
