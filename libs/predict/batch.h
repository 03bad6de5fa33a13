#pragma once
// What a step is asked for and what it takes, as engines see it (serving/batch.h): predictions price nothing else.

#include "serving/batch.h"

namespace llmprof::predict {

using serving::Batch;
using serving::Chunk;
using serving::Launch;
using serving::StepCost;
using serving::StepTime;

}  // namespace llmprof::predict
