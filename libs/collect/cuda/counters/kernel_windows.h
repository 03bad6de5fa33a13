#pragma once
// Counters of single kernels: automatic ranges around launches of the kernels that were asked for, one pass a launch.

#include "collect/cuda/cupti_abi.h"
#include "collect/cuda/counters/plan.h"

namespace llmprof::collect::counters {

void start_kernel_windows(const Plan& plan);
void kernel_window_begins(const cupti::CallbackData& data);
void kernel_window_ended(const cupti::CallbackData& data);
void finish_kernel_windows();

}  // namespace llmprof::collect::counters
