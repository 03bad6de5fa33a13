#pragma once
// How busy the machine is right now, all programs together: peaks measured beside others would be too low.

#include <chrono>
#include <optional>
#include <string_view>

#include "hw/system_files.h"

namespace llmprof::hw {

// Share of the CPU time between two readings of /proc/stat that was not idle. Nothing if they do not tell.
std::optional<double> busy_share(std::string_view stat_before, std::string_view stat_after);

// Looks at /proc/stat for this long.
std::optional<double> busy_share(const SystemFiles& files, std::chrono::milliseconds time);

inline constexpr double kIdle = 0.1;  // less than this much of the machine is busy: peaks may be measured

}  // namespace llmprof::hw
