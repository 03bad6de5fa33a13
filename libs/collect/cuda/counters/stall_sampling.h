#pragma once
// Where warps stand and why they wait: CUPTI's PC sampling, continuous, read by our own thread. What was found on a GPU
// (H200, CUDA 13.0):
//
// - It works beside records of kernels; but then the code of kernels in graphs is not known to it ("non-user"). Without
//   any kind of kernel or graph record it is known.
// - It slows nothing measurably; but samples that are not fetched in time make the stop take seconds.

#include "collect/cuda/counters/plan.h"

namespace llmprof::collect::counters {

void start_stall_sampling(const Plan& plan);
void stall_context_created(void* context);  // sampling begins when a context is first used
void look_at_stalls();                      // in the GPU thread: fetches
void finish_stall_sampling();

}  // namespace llmprof::collect::counters
