#pragma once
// Modules and operators of the model: their time, and what they must cost.

#include "analyze/efficiency.h"
#include "analyze/summary.h"

namespace llmprof::analyze {

// Sets time_ns, what rates refer to: the time of the module's ranges or, on a GPU and where a device works on after the
// host has left them, that of the kernels launched in the module and in those inside it.
void set_times(std::vector<Part>& modules, bool on_gpu = false);

// Fills modules and ops; summary.stages must have their times. `by` is one device: times of kernels are added up over
// devices.
Result<void> fill_parts(const trace::Run& run, const Denominators& by, Summary& summary);

// Fills unmatched; modules must be there.
Result<void> fill_unmatched(const trace::Run& run, Summary& summary);

}  // namespace llmprof::analyze
