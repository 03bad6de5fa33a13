#pragma once
// Where warps stand and why they wait: CUPTI's PC sampling, continuous, read by our own thread. What was found on a GPU
// (H200, CUDA 13.0):
//
// - It works beside records of kernels and graphs. Started after graphs were made it does not know the code of their
//   kernels ("non-user"); started before the first launch it does.
// - Its start hangs the program if the device works meanwhile, from whatever thread it is made.
// - It slows nothing measurably; but samples that are not fetched in time make the stop take seconds.
//
// The first context that gives the device work is sampled. While a stream is being captured nothing is called.

#include "collect/cuda/counters/pc_abi.h"
#include "collect/cuda/counters/plan.h"

namespace llmprof::collect::counters {

void start_stall_sampling(const Plan& plan);
void stall_context_created(void* context);
void stall_launch_begins(void* context);           // sampling begins before the first work of the context
void stall_context_ends(void* context);            // about to be destroyed: it is not asked any more
void stall_module_loaded(const pc::Module& code);  // kept for its source lines
void stall_capture_begins();                       // after capture_is_open() became true: waits for a call under way
void look_at_stalls();                             // in the GPU thread: fetches
void finish_stall_sampling();                      // in the GPU thread

}  // namespace llmprof::collect::counters
