#pragma once
// Counters of single kernels: automatic ranges around launches of the kernels that were asked for, one pass a launch.
// The launch of a measured kernel ends when the kernel has: the host waits for it, and that is the cost.

#include "collect/cuda/counters/plan.h"
#include "collect/cuda/cupti_abi.h"

namespace llmprof::collect::counters {

void start_kernel_windows(const Plan& plan);
void kernel_window_begins(const cupti::CallbackData& data);
void kernel_window_ended(const cupti::CallbackData& data);
void kernel_capture_begins();             // after capture_is_open() became true: waits for an open window, or ends it
void kernel_context_ends(void* context);  // about to be destroyed
void finish_kernel_windows();             // in the GPU thread

}  // namespace llmprof::collect::counters
