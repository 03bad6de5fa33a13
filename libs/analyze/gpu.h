#pragma once
// Fills what a report says about GPUs: kernels by time, time by source line, gaps and notes.

#include "analyze/summary.h"

namespace llmprof::analyze {

// `by`: "line", "function", "stack" or "". Coverage is filled already.
Result<void> fill_gpu(const trace::Run& run, const std::string& by, Summary& summary);

}  // namespace llmprof::analyze
