#pragma once
// Matrix products by shape, with the rates they reached.

#include <vector>

#include "analyze/context.h"
#include "analyze/summary.h"

namespace llmprof::analyze {

struct Shape {
  GemmShape gemm;
  double flops = 0;  // of all its calls
};

// The costliest first.
Result<std::vector<Shape>> gemm_shapes(const trace::Run& run, const AnalysisContext& analysis);

// Bytes of one element; nullopt for a type we do not know.
std::optional<std::int64_t> element_bytes(std::string_view type);

}  // namespace llmprof::analyze
