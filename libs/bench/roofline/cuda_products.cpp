// Peak FLOP/s of products through cuBLASLt: shapes are tried, of each shape the algorithms, and the best is sustained.

#include <fmt/format.h>

#include <algorithm>

#include "bench/cuda/blas.h"
#include "bench/cuda/sampler.h"
#include "bench/roofline/cuda.h"
#include "bench/roofline/shapes.h"

namespace llmprof::bench {
namespace {

constexpr double kTrySeconds = 0.03;
constexpr std::size_t kFinalists = 3;

struct Budget {
  std::size_t shapes;        // tried
  double search_seconds;     // of algorithms, per shape
  double finalist_seconds;   // each of the best shapes
  double sustained_seconds;  // the winner
  double expected(std::size_t count) const {
    return static_cast<double>(std::min(shapes, count)) * (search_seconds + 2 * kTrySeconds) +
           kFinalists * finalist_seconds + sustained_seconds;
  }
};
Budget budget_of(bool quick) { return quick ? Budget{3, 0.06, 0.05, 0.3} : Budget{100, 0.12, 0.3, 1.5}; }

// A product on random data that is ready to run.
struct Product {
  PeakShape shape;
  cuda::PreparedMatmul matmul;
  double flops_per_second = 0;  // when tried
  double flops() const {
    return 2.0 * static_cast<double>(shape.m) * static_cast<double>(shape.n) * static_cast<double>(shape.k);
  }
};

// Operands as large as the largest shape needs; smaller shapes use their beginnings.
struct Operands {
  cuda::Buffer a, b, c;

  static Result<Operands> make(cuda::Context& context, Type type, std::span<const PeakShape> shapes) {
    std::int64_t a = 0, b = 0, c = 0;
    for (const PeakShape& shape : shapes) {
      a = std::max(a, shape.m * shape.k);
      b = std::max(b, shape.n * shape.k);
      c = std::max(c, shape.m * shape.n);
    }
    Operands operands;
    LLMPROF_LET(operands.a, random(context, type, a, 1));
    LLMPROF_LET(operands.b, random(context, type, b, 2));
    LLMPROF_LET(operands.c, context.allocate(c * type_bytes(product_type(type))));
    return operands;
  }

  static Result<cuda::Buffer> random(cuda::Context& context, Type type, std::int64_t values, std::uint64_t seed) {
    const double scale = type == Type::kInt8 ? 40 : 1;  // int8 holds whole numbers
    const TensorSpec spec{.name = "operand", .type = type, .elements = values, .fill = {.scale = scale}};
    LLMPROF_LET(cuda::Buffer buffer, context.allocate(spec.bytes()));
    LLMPROF_TRY(cuda::fill_random(context, buffer.pointer(), spec, seed));
    return buffer;
  }

  Load load(cuda::Context& context, const Product& product, double seconds, bool clock) const {
    return {.enqueue =
                [this, &context, &product]() {
                  return product.matmul.enqueue(a.pointer(), b.pointer(), c.pointer(), context.stream());
                },
            .seconds = seconds,
            .clock = clock};
  }
};

std::vector<PeakShape> shapes_of(Type type, std::size_t most) {
  const std::span<const PeakShape> all = peak_shapes(type);
  return {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(std::min(most, all.size()))};
}

// Every shape for a moment, the fastest first. What cannot be done in one shape may be in another.
Result<std::vector<Product>> try_shapes(cuda::Context& context, Type type, const std::vector<PeakShape>& shapes,
                                        const Operands& operands, const Budget& budget, const GoOn& go_on) {
  LLMPROF_LET(cuda::Blas* const blas, context.blas());
  std::vector<Product> products;
  Error last{ErrorCode::kUnsupported, "no shape to try", ""};
  for (const PeakShape& shape : shapes) {
    if (!go_on()) return Error{ErrorCode::kInterrupted, "interrupted", ""};
    Result<cuda::PreparedMatmul> matmul =
        blas->prepare(cuda::Matmul::dense(type, shape.m, shape.n, shape.k), {.limit_seconds = budget.search_seconds});
    if (!matmul) {
      if (context.broken()) return matmul.error();
      last = matmul.error();
      continue;
    }
    Product product{.shape = shape, .matmul = std::move(*matmul)};
    LLMPROF_LET(const Sustained run, sustain(context, operands.load(context, product, kTrySeconds, false), go_on));
    product.flops_per_second = product.flops() / run.seconds;
    products.push_back(std::move(product));
  }
  if (products.empty()) return last;
  std::sort(products.begin(), products.end(),
            [](const Product& a, const Product& b) { return a.flops_per_second > b.flops_per_second; });
  return products;
}

Result<hw::Peak> measure_products(cuda::Context& context, Type type, const Budget& budget, const GoOn& go_on) {
  const std::vector<PeakShape> shapes = shapes_of(type, budget.shapes);
  LLMPROF_LET(const Operands operands, Operands::make(context, type, shapes));
  LLMPROF_LET(std::vector<Product> products, try_shapes(context, type, shapes, operands, budget, go_on));
  const std::size_t tried = products.size();
  products.resize(std::min(tried, kFinalists));
  for (Product& product : products) {
    LLMPROF_LET(const Sustained run,
                sustain(context, operands.load(context, product, budget.finalist_seconds, false), go_on));
    product.flops_per_second = product.flops() / run.seconds;
  }
  const Product& best = *std::max_element(products.begin(), products.end(), [](const Product& a, const Product& b) {
    return a.flops_per_second < b.flops_per_second;
  });
  LLMPROF_LET(const Sustained run,
              sustain(context, operands.load(context, best, budget.sustained_seconds, true), go_on));
  const bool integers = type == Type::kInt8;
  return hw::Peak{.quantity = "flops",
                  .type = std::string(hw::peak_type(type_name(type))),
                  .value = best.flops() / run.seconds,
                  .unit = integers ? "OP/s" : "FLOP/s",
                  .source = "measured",
                  .method = fmt::format("{}x{}x{}, best of {} shapes, {}, random data, {}", best.shape.m, best.shape.n,
                                        best.shape.k, tried, best.matmul.method, sustained_text(run))};
}

}  // namespace

std::vector<RooflineStep> cuda_product_steps(cuda::Context& context, const RooflineOptions& options) {
  const Budget budget = budget_of(options.quick);
  std::vector<Type> types = options.types;
  if (types.empty()) types.assign(std::begin(kAllTypes), std::end(kAllTypes));
  std::vector<RooflineStep> steps;
  for (const Type type : types) {
    const hw::Peak wanted =
        wanted_peak("flops", std::string(hw::peak_type(type_name(type))), type == Type::kInt8 ? "OP/s" : "FLOP/s");
    steps.push_back({fmt::format("{} products", type_name(type)), budget.expected(peak_shapes(type).size()), wanted,
                     one_peak([&context, type, budget](const GoOn& go_on) {
                       return measure_products(context, type, budget, go_on);
                     })});
  }
  return steps;
}

}  // namespace llmprof::bench
