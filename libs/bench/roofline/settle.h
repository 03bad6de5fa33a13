#pragma once
// Of two ways to reach a CPU's peak, the better one.

#include <vector>

#include "hw/peaks.h"

namespace llmprof::bench {

// "float32" and "float32, one core" become what OpenBLAS reached, where that is more than the loop; and all cores reach
// what one of them did, even where other programs held the rest: whatever a program does, it was possible.
void settle_cpu(std::vector<hw::PeakRow>& rows);

}  // namespace llmprof::bench
