#pragma once
// A simulated serving in the form of a run: all of its requests, and its steps as far as a run of a reasonable size
// holds them.

#include "predict/forecast.h"
#include "predict/run/predicted_run.h"

namespace llmprof::predict {

// A simulation of 100,000 requests has a million steps; each has some twenty executions.
inline constexpr std::int64_t kMostServingSteps = 20'000;

// Simulates once more what `forecast` is of. Steps are those of the first replica; where there are more than `most`,
// those in the middle, one after the other, and a note says which part of the time that is. Command and types are the
// caller's.
Result<PredictedRun> serving_run(const ServingInput& input, const ServingForecast& forecast,
                                 std::int64_t most = kMostServingSteps);

}  // namespace llmprof::predict
