// Matrix product, alone or batched: y = x * w transposed, w stored as the weights of a layer are.

#include "bench/operator.h"
#include "bench/ops/product.h"

namespace llmprof::bench {

namespace {

constexpr AxisSpec kAxes[] = {{"m", "1,16,128,1024,8192", 1, "rows of x: tokens"},
                              {"n", "4096", 1, "rows of w: outputs"},
                              {"k", "4096", 1, "columns of both: inputs"},
                              {"batch", "1", 1, "products in one call"}};

ProductShape shape(const Problem& p) {
  return {.m = p.at("m"), .n = p.at("n"), .k = p.at("k"), .batch = p.at("batch"), .type = p.type};
}

Problem small(const Problem& p) {
  return p.with("m", shortened(p.at("m"), 64))
      .with("n", shortened(p.at("n"), 128))
      .with("k", shortened(p.at("k"), 256))
      .with("batch", std::min<std::int64_t>(p.at("batch"), 3));
}

constexpr CudaImplementation kCuda[] = {
    {"cublaslt", [](cuda::Context& context, const Problem& p) { return prepare_product(context, shape(p)); }}};

}  // namespace

const Operator kGemm{
    .name = "gemm",
    .summary = "matrix product y = x * w^T, alone or batched",
    .axes = kAxes,
    .types = kProductTypes,
    .check = [](const Problem& p) { return check_product(p, shape(p)); },
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
