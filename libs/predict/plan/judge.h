#pragma once
// Whether requests keep their limits: of a whole simulation, and of each request as if it were alone on the engine,
// which no number of replicas can better.

#include <string_view>

#include "predict/batch.h"
#include "serving/metrics.h"
#include "serving/simulate.h"

namespace llmprof::predict::plan {

struct Limits {
  serving::Slo slo;
  double share = 0.99;  // of the requests that are within every limit at once
};

struct Judged {
  double good_share = 0;  // requests within every limit
  // What `share` of the requests have at most, of the worst limit of each as a multiple: at most 1 means kept. Infinite
  // where too many requests were refused.
  double of_slo = 0;
  std::string_view limit;                       // the one that is nearest or exceeded most: "TTFT", "TPOT", "E2E"
  double ttft_ns = 0, tpot_ns = 0, e2e_ns = 0;  // what `share` of the requests have at most; infinite as above
  bool kept() const { return of_slo <= 1; }
};

Judged judge(const serving::Simulation& simulation, const Limits& limits);

// Every request alone: its prompt in chunks of the engine's budget, without what shared prefixes have in the cache,
// then its decode steps. The least that the simulation can give, with these times of steps.
Judged judge_alone(const serving::Workload& workload, const serving::EngineRules& rules, StepCost& cost,
                   const Limits& limits);

// The smallest of these values that this share of them does not exceed; 0 without values.
double value_kept(std::vector<double> values, double share);

}  // namespace llmprof::predict::plan
