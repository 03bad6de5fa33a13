#include "collect/cuda/counters/kernel_windows.h"

namespace llmprof::collect::counters {

void start_kernel_windows(const Plan&) {}
void kernel_window_begins(const cupti::CallbackData&) {}
void kernel_window_ended(const cupti::CallbackData&) {}
void finish_kernel_windows() {}

}  // namespace llmprof::collect::counters
