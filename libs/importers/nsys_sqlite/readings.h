#pragma once
// Tables that are read by one function each: GPU metrics, samples of call stacks, ranges.

#include "importers/nsys_sqlite/about.h"
#include "importers/nsys_sqlite/host_calls.h"
#include "importers/nsys_sqlite/identities.h"

namespace llmprof::importers::nsys {

// What was read at intervals: GPU metrics, and samples of the threads' call stacks.
Result<void> read_gpu_metrics(Export& from);
Result<void> read_samples(Export& from, const About& about);
// NVTX_EVENTS: ranges and marks, nested by time on their threads. Nsight records library calls (cuBLAS, cuDNN) as
// ranges of a domain of that name; those are calls, not annotations, and go to the table api.
Result<void> read_ranges(Export& from);

}  // namespace llmprof::importers::nsys
