#pragma once
// Counters of stages and of the ranges below them, from measured ranges and graph launches.

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "analyze/context.h"
#include "analyze/counters/readings.h"
#include "analyze/summary.h"

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

}  // namespace llmprof::analyze::counters
