// FLOP/s of a GPU's plain cores: multiply-adds in registers, no tensor core.

#include <fmt/format.h>

#include <algorithm>

#include "bench/roofline/cuda.h"

namespace llmprof::bench {
namespace {

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
    return Error{ErrorCode::kUnsupported,
                 fmt::format("{} has no such arithmetic (sm_{}, it came with sm_{})", gpu.name, gpu.capability(),
                             kernel.least_capability),
                 ""};
  }
  LLMPROF_LET(const cuda::Buffer out, context.allocate(256));
  const cuda::Launch launch{.grid_x = gpu.multiprocessors * kBlocksPerMultiprocessor, .block_x = kThreads};
  const Load load{.enqueue = [&]() { return enqueue(context, kernel, launch, out.pointer()); }, .seconds = seconds};
  LLMPROF_LET(const Sustained run, sustain(context, load, go_on));
  const double flops = 2 * kernel.lanes * kAddsPerRound * kernel.rounds * static_cast<double>(launch.grid_x * kThreads);
  return hw::Peak{.quantity = "flops",
                  .type = std::string(kernel.peak),
                  .value = flops / run.seconds,
                  .unit = "FLOP/s",
                  .source = "measured",
                  .method = "multiply-add loop on the plain cores, " + sustained_text(run)};
}

}  // namespace

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
