#pragma once
// The three ways of counting that hooks.cpp passes events to: ranges, single kernels, stalls.

#include "collect/cuda/counters/pc_abi.h"
#include "collect/cuda/counters/plan.h"
#include "collect/cuda/cupti_abi.h"
#include "wire/format.h"

namespace llmprof::collect::counters {

// Counters of the program's ranges and of graph launches: one user range of CUPTI's each, nothing executed twice.
//
// Which: the innermost ranges whose names match the plan; one at a time in a process, as there is one profiler. In a
// program without such ranges, launches of graphs. How often: as the budget allows (choice.h).

void start_range_windows(const Plan& plan);
void range_window_opens(wire::StringId name, std::uint32_t domain, int level);
void range_window_closes(std::uint32_t domain, int level);
void graph_window_begins(const cupti::CallbackData& data);
void graph_window_ended();
void launch_in_window(const cupti::CallbackData& data, wire::LaunchOp op);
void range_capture_begins();
void range_context_ends(void* context);
void look_at_range_windows(bool idle);
void finish_range_windows();

// Counters of single kernels: automatic ranges around launches of the kernels that were asked for, one pass a launch.
// The launch of a measured kernel ends when the kernel has: the host waits for it, and that is the cost.

void start_kernel_windows(const Plan& plan);
void kernel_window_begins(const cupti::CallbackData& data);
void kernel_window_ended(const cupti::CallbackData& data);
void kernel_capture_begins();             // after capture_is_open() became true: waits for an open window, or ends it
void kernel_context_ends(void* context);  // about to be destroyed
void finish_kernel_windows();             // in the GPU thread

// Where warps stand and why they wait: CUPTI's PC sampling, continuous, read by our own thread. What was found on a GPU
// (H200, CUDA 13.0):
//
// - It works beside records of kernels and graphs. Started after graphs were made it does not know the code of their
//   kernels ("non-user"); started before the first launch it does.
// - Its start hangs the program if the device works meanwhile, from whatever thread it is made.
// - It slows nothing measurably; but samples that are not fetched in time make the stop take seconds.
//
// The first context that gives the device work is sampled. While a stream is being captured nothing is called.

void start_stall_sampling(const Plan& plan);
void stall_context_created(void* context);
void stall_launch_begins(void* context);           // sampling begins before the first work of the context
void stall_context_ends(void* context);            // about to be destroyed: it is not asked any more
void stall_module_loaded(const pc::Module& code);  // kept for its source lines
void stall_capture_begins();                       // after capture_is_open() became true: waits for a call under way
void look_at_stalls();                             // in the GPU thread: fetches
void finish_stall_sampling();                      // in the GPU thread

}  // namespace llmprof::collect::counters
