#pragma once
// Why the hardware counters of a GPU may not be read here, and who may hold them: in words, from the system's files.

#include <string>

#include "hw/system_files.h"

namespace llmprof::hw::counters {

// Which setting forbids it, and whether this process could have been allowed.
std::string restriction(const SystemFiles& files);
// Programs that are known to hold counters and run here, with their pids; "" where there is none to be seen.
std::string likely_holders(const SystemFiles& files);

}  // namespace llmprof::hw::counters
