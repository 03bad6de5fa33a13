// Peak FLOP/s of products through cuBLASLt: shapes are tried, of each shape the algorithms, and the best is sustained.

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <span>

#include "base/errors.h"
#include "bench/cuda/blas.h"
#include "bench/cuda/sampler.h"
#include "bench/roofline/cuda.h"
#include "bench/type.h"
#include "hw/roof.h"

namespace llmprof::bench {

namespace {

constexpr std::size_t kTryBatches = 3;
constexpr double kTrySeconds = 0.13;  // that they take, with their pauses
constexpr std::size_t kFinalists = 3;

struct Budget {
  std::size_t shapes;        // tried
  double search_seconds;     // of algorithms, per shape
  double finalist_seconds;   // each of the best shapes; 0: the best of the first try is the winner
  double peak_seconds;       // the winner, with pauses
  double sustained_seconds;  // the winner, without
  double expected(std::size_t count) const {
    return static_cast<double>(std::min(shapes, count)) * (1.5 * search_seconds + kTrySeconds) +
           kFinalists * finalist_seconds + peak_seconds + sustained_seconds;
  }
};
Budget budget_of(bool quick) { return quick ? Budget{3, 0.05, 0, 0.35, 0.2} : Budget{100, 0.1, 0.4, 1, 1.5}; }

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

  Load load(cuda::Context& context, const Product& product, double seconds) const {
    return {.enqueue =
                [this, &context, &product]() {
                  return product.matmul.enqueue(a.pointer(), b.pointer(), c.pointer(), context.stream());
                },
            .seconds = seconds,
            .clock = false,
            .pauses = true};
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
    Load load = operands.load(context, product, 0);
    load.least_batches = kTryBatches;
    LLMPROF_LET(const Sustained run, sustain(context, load, go_on));
    product.flops_per_second = product.flops() / run.seconds;
    products.push_back(std::move(product));
  }
  if (products.empty()) return last;
  std::ranges::sort(products, std::greater(), &Product::flops_per_second);
  return products;
}

// The fastest of those tried; the first few run again, and longer, if there is time.
Result<Product> winner_of(cuda::Context& context, std::vector<Product> products, const Operands& operands,
                          double seconds, const GoOn& go_on) {
  if (seconds <= 0) return std::move(products.front());
  products.resize(std::min(products.size(), kFinalists));
  for (Product& product : products) {
    LLMPROF_LET(const Sustained run, sustain(context, operands.load(context, product, seconds), go_on));
    product.flops_per_second = product.flops() / run.seconds;
  }
  return std::move(*std::ranges::max_element(products, {}, &Product::flops_per_second));
}

hw::Peak product_peak(Type type, std::string_view suffix, double flops_per_second, std::string method) {
  hw::Peak peak = wanted_peak("flops", std::string(hw::peak_type(type_name(type))) + std::string(suffix),
                              type == Type::kInt8 ? "OP/s" : "FLOP/s");
  peak.value = flops_per_second;
  peak.source = "measured";
  peak.method = std::move(method);
  return peak;
}

// What products reach, and what they reach back to back for a while, when the power limit has its say.
Result<std::vector<hw::PeakRow>> measure_products(cuda::Context& context, Type type, const Budget& budget,
                                                  const GoOn& go_on) {
  const std::vector<PeakShape> shapes = shapes_of(type, budget.shapes);
  LLMPROF_LET(const Operands operands, Operands::make(context, type, shapes));
  LLMPROF_LET(std::vector<Product> products, try_shapes(context, type, shapes, operands, budget, go_on));
  const std::size_t tried = products.size();
  LLMPROF_LET(const Product best, winner_of(context, std::move(products), operands, budget.finalist_seconds, go_on));
  Load load = operands.load(context, best, budget.peak_seconds);
  load.clock = true;
  LLMPROF_LET(const Sustained peak, sustain(context, load, go_on));
  load.pauses = false;
  load.seconds = budget.sustained_seconds;
  LLMPROF_LET(const Sustained steady, sustain(context, load, go_on));
  const std::string shape = fmt::format("{}x{}x{}", best.shape.m, best.shape.n, best.shape.k);
  return std::vector<hw::PeakRow>{{product_peak(type, "", best.flops() / peak.seconds,
                                                fmt::format("{}, best of {} shapes, {}, random data, {}", shape, tried,
                                                            best.matmul.method, sustained_text(peak))),
                                   ""},
                                  {product_peak(type, ", sustained", best.flops() / steady.seconds,
                                                fmt::format("{} back to back for {:.1f} s, {}", shape,
                                                            budget.sustained_seconds, sustained_text(steady))),
                                   ""}};
}

// As they were found on an H200 (132 multiprocessors), sustained for 0.1 s on random data, the fastest first: long
// inner dimensions (little is written), and results whose tiles of 128 x 256 or 256 x 128 fill all multiprocessors a
// whole number of times (1536 x 2816 are 132 of them). Cubes are what others quote.
constexpr PeakShape kHalf[] = {{2048, 2048, 13312}, {768, 5632, 16384}, {3072, 5632, 8192}, {8192, 8192, 8192},
                               {1536, 2816, 16384}, {3072, 2816, 8192}, {8192, 8448, 4096}, {4224, 2048, 8192},
                               {4096, 4096, 8192},  {4096, 4096, 4096}};
constexpr PeakShape kFloat8[] = {{1536, 2816, 32768}, {4224, 2048, 16384}, {4096, 4096, 16384},
                                 {1280, 4096, 12032}, {1536, 2816, 16384}, {3072, 5632, 16384},
                                 {8192, 4096, 8192},  {8192, 8192, 8192},  {2048, 2048, 13312}};
constexpr PeakShape kInt8[] = {{1536, 2816, 16384}, {2048, 2048, 13312}, {4096, 4096, 16384}, {3072, 2816, 8192},
                               {4224, 4096, 8192},  {4096, 4096, 8192},  {4096, 4096, 4096},  {8192, 8192, 8192}};
constexpr PeakShape kTf32[] = {{2048, 2048, 13312}, {1536, 2816, 8192}, {3072, 5632, 4096},
                               {4096, 4096, 4096},  {8192, 8192, 4096}, {4224, 4096, 4096}};
constexpr PeakShape kFloat32[] = {{4096, 4096, 4096}, {8192, 4096, 2048}, {4224, 4096, 2048},
                                  {2048, 2048, 8192}, {8448, 4096, 1024}, {8192, 8192, 2048}};
constexpr PeakShape kFloat64[] = {{4096, 4096, 4096}, {2112, 2048, 4096}, {2048, 2048, 4096},
                                  {8192, 4096, 2048}, {4224, 4096, 2048}, {8192, 8192, 2048}};

constexpr std::int64_t kThreads = 256, kBlocksPerMultiprocessor = 8;
constexpr double kAddsPerRound = 256;  // of each thread and lane: roofline.cu

struct VectorKernel {
  Type type;
  std::string_view peak;  // "roofline_<peak>" is the kernel
  double lanes;           // of one thread's values
  int rounds;             // a millisecond or two
  std::int64_t least_capability;
};
constexpr VectorKernel kKernels[] = {{Type::kFloat64, "float64_vector", 1, 250, 0},
                                     {Type::kFloat32, "float32_vector", 1, 500, 0},
                                     {Type::kFloat16, "float16_vector", 2, 500, 0},
                                     {Type::kBfloat16, "bfloat16_vector", 2, 500, 80}};

// x = x * 0.75 + 0.25, in the kernel's own type; pairs of 16 bits as their bits.
Result<void> enqueue(cuda::Context& context, const VectorKernel& kernel, const cuda::Launch& launch,
                     cuda::Pointer out) {
  const std::string name = fmt::format("roofline_{}", kernel.peak);
  const auto with = [&](auto factor, auto addend) {
    return context.launch(name, launch, {out, kernel.rounds, factor, addend});
  };
  switch (kernel.type) {
    case Type::kFloat64:
      return with(0.75, 0.25);
    case Type::kFloat16:
      return with(std::uint32_t{0x3a003a00}, std::uint32_t{0x34003400});
    case Type::kBfloat16:
      return with(std::uint32_t{0x3f403f40}, std::uint32_t{0x3e803e80});
    default:
      return with(0.75f, 0.25f);
  }
}

Result<hw::Peak> measure_vector(cuda::Context& context, const VectorKernel& kernel, double seconds, const GoOn& go_on) {
  const cuda::Properties& gpu = context.properties();
  if (gpu.capability() < kernel.least_capability) {
    return unsupported_error("{} has no such arithmetic (sm_{}, it came with sm_{})", gpu.name, gpu.capability(),
                             kernel.least_capability);
  }
  LLMPROF_LET(const cuda::Buffer out, context.allocate(256));
  const cuda::Launch launch{.grid_x = gpu.multiprocessors * kBlocksPerMultiprocessor, .block_x = kThreads};
  const Load load{.enqueue = [&]() { return enqueue(context, kernel, launch, out.pointer()); }, .seconds = seconds};
  LLMPROF_LET(const Sustained run, sustain(context, load, go_on));
  const double flops = 2 * kernel.lanes * kAddsPerRound * kernel.rounds * static_cast<double>(launch.grid_x * kThreads);
  return hw::measured_peak("flops", std::string(kernel.peak), flops / run.seconds, "FLOP/s",
                           "multiply-add loop on the plain cores, " + sustained_text(run));
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
    steps.push_back(
        {fmt::format("{} products", type_name(type)), budget.expected(peak_shapes(type).size()), wanted,
         [&context, type, budget](const GoOn& go_on) { return measure_products(context, type, budget, go_on); }});
  }
  return steps;
}

std::span<const PeakShape> peak_shapes(Type type) {
  constexpr std::span<const PeakShape> kShapes[] = {kFloat64, kFloat32, kTf32, kHalf, kHalf, kFloat8, kInt8, kFloat32};
  return kShapes[static_cast<std::size_t>(type)];  // in the order of Type
}

// FLOP/s of a GPU's plain cores: multiply-adds in registers, no tensor core.

std::vector<RooflineStep> cuda_vector_steps(cuda::Context& context, const RooflineOptions& options) {
  const double seconds = options.quick ? 0.08 : 0.4;
  std::vector<RooflineStep> steps;
  for (const VectorKernel& kernel : kKernels) {
    const bool asked = options.types.empty() ||
                       std::find(options.types.begin(), options.types.end(), kernel.type) != options.types.end();
    if (!asked) continue;
    steps.push_back({fmt::format("{} multiply-adds", type_name(kernel.type)), seconds + 0.05,
                     wanted_peak("flops", std::string(kernel.peak), "FLOP/s"),
                     one_peak([&context, &kernel, seconds](const GoOn& go_on) {
                       return measure_vector(context, kernel, seconds, go_on);
                     })});
  }
  return steps;
}

}  // namespace llmprof::bench
