#pragma once
// Counters of stages and of kernels out of samples of the whole device.

#include "analyze/context.h"
#include "analyze/counters/readings.h"
#include "analyze/counters/stages.h"
#include "analyze/counters/unmix.h"
#include "analyze/summary.h"

namespace llmprof::analyze::counters {

// Kernels of a device by time; `kind` indexes `names`.
struct Timeline {
  std::vector<Interval> intervals;
  std::vector<std::string> names;
  bool estimated = false;  // some are kernels of graph launches that were not recorded by node
};
Result<Timeline> read_timeline(const trace::Run& run, std::int64_t device_id);

// Finds how far the samples' clock is off and moves them.
void align_samples(const Timeline& timeline, SampleSet& samples, Counters& counters);

// What the samples hold of [begin_ns, end_ns): sums by the part of each sample inside, other metrics as means over it.
// Empty where less than half of it was sampled.
Metrics within(const SampleSet& samples, std::int64_t begin_ns, std::int64_t end_ns);

StepCosts fill_sampled_stages(const SampleSet& samples, const std::vector<PlacedStep>& steps,
                              const AnalysisContext& analysis, Summary& summary);
// `cache_bytes`: of the device's last cache; 0 unknown.
void fill_unmixed(const SampleSet& samples, const Timeline& timeline, std::int64_t cache_bytes, Counters& counters);

}  // namespace llmprof::analyze::counters
