#pragma once
// The steps of a CPU's roofline: the multiply-add loop beside OpenBLAS, and streams per level of the memory.

#include <vector>

#include "bench/roofline/roofline.h"
#include "bench/roofline/steps.h"

namespace llmprof::bench {

std::vector<RooflineStep> cpu_steps(const hw::Device& device, const RooflineOptions& options);

}  // namespace llmprof::bench
