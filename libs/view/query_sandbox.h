#pragma once
// What a process that runs SQL gives up.

#include <cstdint>

#include "base/result.h"

namespace llmprof::view {

// For this process and all its threads to come; cannot be undone: files can be opened for reading only, none can be
// made, removed or renamed, no socket, no other program, no look into other processes, no more than so much memory and
// CPU time. Under a sanitizer, which needs more, memory stays as it is.
Result<void> give_up_all_but_reading(std::uint64_t memory_bytes, std::uint64_t cpu_seconds);

}  // namespace llmprof::view
