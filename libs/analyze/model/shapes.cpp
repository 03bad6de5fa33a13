#include "analyze/model/shapes.h"

#include "analyze/questions.h"
#include "analyze/rows_of.h"
#include "hw/roof.h"
#include "model/model.h"

namespace llmprof::analyze {

namespace {

// Operands that a library rounds before it multiplies are multiplied in that type: float32 as tf32 or bfloat16. Narrow
// operands whose products are added up in float32 still are products of narrow operands.
std::string peak_type_of(const std::string& type, const std::string& compute_type) {
  constexpr std::string_view kFast = "float32_fast_";
  if (type != "float32") return type;
  if (compute_type.starts_with(kFast)) return compute_type.substr(kFast.size());
  return compute_type == "tf32" ? compute_type : type;
}

Shape shape_of(GemmShape gemm_row, const AnalysisContext& analysis) {
  Shape shape{.gemm = std::move(gemm_row)};
  GemmShape& gemm = shape.gemm;
  gemm.peak_type = peak_type_of(gemm.type, gemm.compute_type);
  const auto calls = static_cast<double>(gemm.calls);
  const double seconds = static_cast<double>(gemm.time_ns) * 1e-9;
  shape.flops = calls * model::gemm_flops(gemm.m, gemm.n, gemm.k, gemm.batch);
  gemm.why = "no time, or no peak FLOP/s is known for this device and type";
  if (gemm.time_ns <= 0) return shape;
  gemm.flops_per_s = shape.flops / seconds;
  if (const auto bytes = element_bytes(gemm.type)) {
    gemm.bytes_per_s = calls * model::gemm_bytes(gemm.m, gemm.n, gemm.k, gemm.batch, *bytes) / seconds;
  }
  if (const PeakRate* peak = analysis.peak("flops", gemm.peak_type)) {
    gemm.of_peak = hw::efficiency(shape.flops, static_cast<double>(gemm.time_ns), peak->value);
    if (gemm.of_peak) gemm.why.clear();
  }
  return shape;
}

}  // namespace

std::optional<std::int64_t> element_bytes(std::string_view type) {
  if (type == "float32" || type == "tf32") return 4;
  if (type == "float64" || type == "complex64") return 8;
  if (type == "float16" || type == "bfloat16") return 2;
  if (type == "int8" || type.starts_with("float8")) return 1;
  return std::nullopt;
}

Result<std::vector<Shape>> gemm_shapes(const trace::Run& run, const AnalysisContext& analysis) {
  LLMPROF_LET(std::vector<GemmShape> rows, ask_rows<GemmShape>(run, "sql/gemm_shapes"));
  std::vector<Shape> shapes;
  for (GemmShape& row : rows) shapes.push_back(shape_of(std::move(row), analysis));
  return shapes;
}

}  // namespace llmprof::analyze
