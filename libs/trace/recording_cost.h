#pragma once

namespace llmprof::trace {

// What a kernel that is launched by itself and timed by CUPTI delays its thread: measured in an eager decode loop on an
// H200 with CUDA 13.0 (perf/results/2026-11-17-h200-own-cost.md: 502 kernels a step, 1.075 times as long).
inline constexpr double kTimedKernelNs = 1200;

}  // namespace llmprof::trace
