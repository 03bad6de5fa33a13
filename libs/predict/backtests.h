#pragma once
// How wrong predictions of whole servings have been: what real engines did, predicted again from their operator tables.

#include <string>
#include <vector>

#include "base/result.h"
#include "predict/deployment.h"

namespace llmprof::predict {

struct ServingBacktest {
  std::string name;  // "vllm@0.19.0, meta-llama/Llama-3.1-8B, NVIDIA GeForce RTX 4090"
  bool with_tables = true;
  Deployment deployment;
  serving::Comparison comparison;
  StepError error;
  std::vector<OperatorError> operators;
  // Of mean, p50 and p99 of TTFT, TPOT and E2E: how many, and how many of them lie in the stated interval.
  std::int64_t stated = 0, covered = 0;
};

// A folder with meta.json, operator tables, a workload (its name contains "workload") and the measured requests
// ("measured").
Result<ServingBacktest> backtest_folder(const std::string& folder);
// Those that are part of the program; without their tables for predictions that have none.
Result<std::vector<ServingBacktest>> built_in_backtests(bool with_tables = true);

// A prediction held against what was measured.
Result<ServingBacktest> backtest_serving(Deployment deployment, ServingInput input,
                                         const std::vector<serving::MeasuredRequest>& measured);

// Of those, the one most like this set-up; nullptr if there are none.
const ServingBacktest* nearest(const std::vector<ServingBacktest>& known, const Deployment& deployment);

}  // namespace llmprof::predict
