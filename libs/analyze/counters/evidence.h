#pragma once
// The same quantity by the model's formulas, by the shapes of matrix products and by counters; and what explains a
// difference. Causes are tried one after the other: each predicts a number, and the first that comes near what was
// counted is told.

#include <optional>
#include <string>

#include "analyze/context.h"
#include "analyze/counters/stages.h"
#include "analyze/summary.h"
#include "trace/run.h"

namespace llmprof::analyze::counters {

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

}  // namespace llmprof::analyze::counters
