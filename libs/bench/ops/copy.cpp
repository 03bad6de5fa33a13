// y = x from one place in a device's memory to another: the bandwidth that everything else is held against.

#include <cstring>

#include "bench/operator.h"
#include "bench/ops/rows.h"

namespace llmprof::bench {

namespace copy {
namespace {

constexpr AxisSpec kAxes[] = {{"values", "64k,16M,256M", 1, "values to copy"}};

Result<void> check(const Problem& problem) { return check_values(problem, axis(problem, "values")); }

std::int64_t bytes_of(const Problem& problem) { return problem.at("values") * type_bytes(problem.type); }

std::vector<TensorSpec> tensors(const Problem& problem) {
  return {{.name = "x", .type = problem.type, .elements = problem.at("values")},
          {.name = "y", .role = Role::kOut, .type = problem.type, .elements = problem.at("values")}};
}

model::KernelWork work(const Problem& problem) {
  const double values = axis(problem, "values");
  return model::streaming_work(values, values, static_cast<double>(type_bytes(problem.type)));
}

// Many or few values are copied by the same code; what is left at the end stays.
Problem small(const Problem& problem) {
  const std::int64_t values = problem.at("values");
  return problem.with("values", std::min(values, std::int64_t{100'000} + values % 1000));
}

void reference(const Problem&, std::span<std::vector<double>> tensors) { tensors[1] = tensors[0]; }

void cpu(const Problem& problem, std::span<std::byte* const> tensors, const Team& team) {
  team.each(bytes_of(problem), kGrainValues * 4, [&](std::int64_t begin, std::int64_t end) {
    std::memcpy(tensors[1] + begin, tensors[0] + begin, static_cast<std::size_t>(end - begin));
  });
}

Result<CudaCall> prepare_kernel(cuda::Context& context, const Problem& problem) {
  return kernel_call<2>(context, "copy_bytes", streaming_launch(bytes_of(problem), 256 * 16), bytes_of(problem));
}

Result<CudaCall> prepare_driver(cuda::Context& context, const Problem& problem) {
  return CudaCall{
      .enqueue = [&context, bytes = bytes_of(problem)](std::span<const cuda::Pointer> t,
                                                       cuda::Stream) { return context.copy(t[1], t[0], bytes); },
      .method = "cuMemcpyDtoDAsync"};
}

constexpr CudaImplementation kCuda[] = {{"kernel", prepare_kernel}, {"driver", prepare_driver}};

}  // namespace
}  // namespace copy

const Operator kCopy{.name = "copy",
                     .summary = "y = x from memory to memory of one device",
                     .axes = copy::kAxes,
                     .types = kRowTypes,
                     .check = copy::check,
                     .tensors = copy::tensors,
                     .work = copy::work,
                     .small = copy::small,
                     .reference = copy::reference,
                     .cpu = copy::cpu,
                     .cpu_method = "memcpy",
                     .cuda = copy::kCuda,
                     .tolerance = 0};

}  // namespace llmprof::bench
