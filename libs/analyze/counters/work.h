#pragma once
// Operations, bytes at the levels of memory and the roofs, from what was counted.

#include <vector>

#include "analyze/context.h"
#include "analyze/counters/readings.h"
#include "analyze/sections/counters_summary.h"
#include "hw/peaks.h"

namespace llmprof::analyze::counters {

std::vector<hw::Peak> peaks_of(const AnalysisContext& analysis, std::int64_t device_id);

// Of `metrics` counted over something that takes `time_ns`; 0 unknown.
CountedWork work_of(const Metrics& metrics, double time_ns, const std::vector<hw::Peak>& peaks);

// FLOP/s of work / the peak of the arithmetic that takes the most time of it; nullopt where one is unknown.
std::optional<double> flops_of_peak(const CountedWork& work, const std::vector<hw::Peak>& peaks);

// Bytes asked of L1: with what the tensor memory accelerator loads past it.
std::optional<double> l1_bytes(const Metrics& metrics);

}  // namespace llmprof::analyze::counters
