#pragma once
// Inferred steps take in the ranges that are there: a module that a program names belongs to the step it runs in.

#include "analyze/passes/classify.h"

namespace llmprof::analyze {

// After the inferred steps were added. A step begins with the first module of its pass, not only with the first matrix
// product, which tells it: embeddings and the first norm come before. `ranges` in sweep order.
void adopt_ranges(const Ranges& ranges, Classified& classified);

}  // namespace llmprof::analyze
