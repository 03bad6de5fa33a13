#pragma once
// The blocks of the model and their time in each stage.

#include <vector>

#include "analyze/summary.h"

namespace llmprof::analyze {

// Empty where no module is a layer.
Result<std::vector<Block>> blocks_of(const trace::Run& run, bool on_gpu);

}  // namespace llmprof::analyze
