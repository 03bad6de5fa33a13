#pragma once
// Counters of stages and of the ranges below them, from measured ranges and graph launches.

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analyze/context.h"
#include "analyze/counters/readings.h"
#include "analyze/counters/unmix.h"
#include "analyze/sections/counters_summary.h"
#include "analyze/summary.h"
#include "base/result.h"
#include "hw/peaks.h"
#include "trace/run.h"

namespace llmprof::analyze::counters {

// What the model needs in one of the steps that were measured.
struct StepCost {
  std::optional<double> flops, bytes;
};
using StepCosts = std::map<std::string, StepCost>;  // by stage

StepCosts fill_measured(const std::vector<Measurement>& measurements, const std::vector<PlacedStep>& steps,
                        const AnalysisContext& analysis, Summary& summary);

// The rest of a stage, from its metrics of one step: values are there already.
void complete(CountedStage& counted, const Metrics& metrics, std::int64_t device_id, const StepCost& cost,
              const std::pair<const AnalysisContext&, const Summary&>& from);

// A mean over steps that is known only if every step knows it.
class CostSum {
 public:
  void add(double flops, double bytes, double steps) { flops_ += flops, bytes_ += bytes, steps_ += steps; }
  StepCost mean() const;

 private:
  double flops_ = 0, bytes_ = 0, steps_ = 0;
};

// Counters of stages and of kernels out of samples of the whole device.

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

// Samples of warps by kernel, reason and place.

Result<void> fill_stalls(const trace::Run& run, Counters& counters);

// The same quantity by the model's formulas, by the shapes of matrix products and by counters; and what explains a
// difference. Causes are tried one after the other: each predicts a number, and the first that comes near what was
// counted is told.

// All of one step.
struct FlopsFacts {
  double analytic = 0, counted = 0;
  double products = 0, padded = 0;  // of matrix products with known shapes; the same in whole tiles
  double plain_products = 0;        // of these, by kernels that do not use tensor cores
  double attention = 0;             // of analytic, where it is causal
  bool tensor_only = false;         // plain cores were not counted
  std::string tile;                 // that pads most: "64x8"
};
std::string explain_flops(const FlopsFacts& facts);

struct BytesFacts {
  double analytic = 0, counted = 0;
  double weights = 0, kv = 0;  // of analytic
  double context = 0, largest_context = 0;
  double cache_bytes = 0;
  double type_ratio = 1;  // bytes of a value as multiplied / as the model has it
  bool weights_fit_cache = false;
};
std::string explain_bytes(const BytesFacts& facts);

Result<void> fill_evidence(const trace::Run& run, const AnalysisContext& analysis, const StepCosts& costs,
                           Summary& summary);

// Operations, bytes at the levels of memory and the roofs, from what was counted.

std::vector<hw::Peak> peaks_of(const AnalysisContext& analysis, std::int64_t device_id);

// Of `metrics` counted over something that takes `time_ns`; 0 unknown.
CountedWork work_of(const Metrics& metrics, double time_ns, const std::vector<hw::Peak>& peaks);

// FLOP/s of work / the peak of the arithmetic that takes the most time of it; nullopt where one is unknown.
std::optional<double> flops_of_peak(const CountedWork& work, const std::vector<hw::Peak>& peaks);

// Bytes asked of L1: with what the tensor memory accelerator loads past it.
std::optional<double> l1_bytes(const Metrics& metrics);

}  // namespace llmprof::analyze::counters
