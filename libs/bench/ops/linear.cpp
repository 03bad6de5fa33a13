// A projection of a transformer, without bias: every token's `in` values to `out` values.

#include "bench/operator.h"
#include "bench/ops/product.h"
#include "bench/ops/rows.h"

namespace llmprof::bench {

namespace {

constexpr AxisSpec kAxes[] = {{"batch", "1", 1, "sequences"},
                              {"seq", "1,128,2048", 1, "tokens per sequence"},
                              {"in", "4096", 1, "values per token"},
                              {"out", "4096", 1, "values per token after it"}};

ProductShape shape(const Problem& p) {
  return {.m = row_count(p), .n = p.at("out"), .k = p.at("in"), .batch = 1, .type = p.type};
}

Result<void> check(const Problem& p) {
  LLMPROF_TRY(check_values(p, axis(p, "batch") * axis(p, "seq")));
  return check_product(p, shape(p));
}

Problem small(const Problem& p) {
  return p.with("batch", std::min<std::int64_t>(p.at("batch"), 2))
      .with("seq", shortened(p.at("seq"), 32))
      .with("out", shortened(p.at("out"), 128))
      .with("in", shortened(p.at("in"), 256));
}

constexpr CudaImplementation kCuda[] = {
    {"cublaslt", [](cuda::Context& context, const Problem& p) { return prepare_product(context, shape(p)); }}};

}  // namespace

const Operator kLinear{
    .name = "linear",
    .summary = "projection of tokens, no bias: batch * seq rows of `in` values to `out` values",
    .axes = kAxes,
    .types = kProductTypes,
    .check = check,
    .tensors = [](const Problem& p) { return product_tensors(shape(p)); },
    .work = [](const Problem& p) { return work_of_product(shape(p)); },
    .small = small,
    .reference = [](const Problem& p, std::span<std::vector<double>> t) { product_reference(shape(p), t); },
    .cpu = [](const Problem& p, std::span<std::byte* const> t, const Team& team) { product_on_cpu(shape(p), t, team); },
    .cpu_method_of = product_cpu_method,
    .cpu_types = kProductCpuTypes,
    .cuda = kCuda,
    .spot_check = [](cuda::Context& context, const Problem& p,
                     std::span<const cuda::Pointer> t) { return spot_check_product(context, shape(p), t); }};

}  // namespace llmprof::bench
