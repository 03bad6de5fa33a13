#pragma once
// What the files of operators share: a description with defaults, which are those of operators over rows of tokens
// (axes batch, seq and hidden), checks of axes, launches that stream through rows, and loops of a CPU. For these files
// only: they are compiled with -fopenmp-simd.

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <initializer_list>
#include <string>

#include "base/errors.h"
#include "bench/operator.h"

namespace llmprof::bench {

inline double axis(const Problem& problem, std::string_view name) { return static_cast<double>(problem.at(name)); }

// Axes are what a user typed: sizes are formed in float64 and held against this before anything multiplies them in
// int64. `values` are those of the problem's largest tensor.
inline Result<void> check_values(const Problem& problem, double values) {
  constexpr double kMostValues = 0x1p48;  // of one tensor: a petabyte of float32
  if (values <= kMostValues) return {};
  return Error{ErrorCode::kUsage,
               fmt::format("{}: {} makes a tensor of {:.3g} values", problem.op, problem.sizes(), values),
               fmt::format("at most {:.3g} are counted, let alone stored", kMostValues)};
}

// The values of a tensor with these axes.
inline Result<void> check_values(const Problem& problem, std::initializer_list<std::string_view> axes) {
  double values = 1;
  for (const std::string_view name : axes) values *= axis(problem, name);
  return check_values(problem, values);
}

// "rope: heads = 2000000 is more than 1048576"
inline Result<void> check_most(const Problem& problem, std::string_view name, std::int64_t most) {
  if (problem.at(name) <= most) return {};
  return usage_error("{}: {} = {} is more than {}", problem.op, name, problem.at(name), most);
}

inline std::int64_t row_count(const Problem& problem) { return problem.at("batch") * problem.at("seq"); }

// Products of axes stay in 64 bits, and columns of a row in 32. `row` is the axis of a row's values.
inline Result<void> check_sizes(const Problem& problem, std::string_view row) {
  LLMPROF_TRY(check_values(problem, {"batch", "seq", row}));
  if (problem.at(row) <= std::int64_t{1} << 30) return {};
  return usage_error("{}: {} = {} is more than 2^30", problem.op, row, problem.at(row));
}

// Few rows of full width: kernels branch by width, not by the number of rows.
inline Problem small_rows(const Problem& problem) { return problem.with_most("batch", 2).with_most("seq", 7); }

// A struct that describes an operator derives from this and hides what differs. It adds tensors(), reference(), cpu()
// and prepare() for a GPU; where there are several ways to compute it there, kCuda instead.
struct RowOperator {
  static constexpr AxisSpec kAxes[] = {{"batch", "1", 1, "sequences"},
                                       {"seq", "1,128,2048", 1, "tokens per sequence"},
                                       {"hidden", "4096", 1, "values per token"}};
  static constexpr Type kTypes[] = {Type::kBfloat16, Type::kFloat16, Type::kFloat32};
  static Result<void> check(const Problem& problem) { return check_sizes(problem, "hidden"); }
  static Problem small(const Problem& problem) { return small_rows(problem); }
  static constexpr std::string_view kCpuMethod = "loop";
  static constexpr decltype(Operator::cpu_method_of) cpu_method_of = nullptr;
  static constexpr std::span<const Type> kCpuTypes = {};
  static constexpr decltype(Operator::spot_check) spot_check = nullptr;
  static constexpr std::optional<double> kTolerance = std::nullopt;
};

// Every input read once, every output written once: the work of an operator that only moves memory.
template <class Described>
model::KernelWork streamed_work(const Problem& problem) {
  model::KernelWork work;
  for (const TensorSpec& spec : Described::tensors(problem)) {
    if (spec.role != Role::kOut) work.read_bytes += static_cast<double>(spec.bytes());
    if (spec.role != Role::kIn) work.write_bytes += static_cast<double>(spec.bytes());
  }
  return work;
}

template <class Described>
struct OneKernel {
  static constexpr CudaImplementation kCuda[] = {{"kernel", Described::prepare}};
};

template <class Described>
constexpr Operator describe(std::string_view name, std::string_view summary) {
  Operator op{.name = name,
              .summary = summary,
              .axes = Described::kAxes,
              .types = Described::kTypes,
              .check = Described::check,
              .tensors = Described::tensors,
              .work = streamed_work<Described>,
              .small = Described::small,
              .reference = Described::reference,
              .cpu = Described::cpu,
              .cpu_method = Described::kCpuMethod,
              .cpu_method_of = Described::cpu_method_of,
              .cpu_types = Described::kCpuTypes,
              .spot_check = Described::spot_check,
              .tolerance = Described::kTolerance};
  if constexpr (requires { Described::work; }) op.work = Described::work;
  if constexpr (requires { Described::kCuda; }) {
    op.cuda = Described::kCuda;
  } else {
    op.cuda = OneKernel<Described>::kCuda;
  }
  return op;
}

// "rmsnorm_bfloat16": how the kernels of ops/*.cu are named.
inline std::string kernel_name(std::string_view op, Type type) {
  return std::string(op) + '_' + std::string(type_name(type));
}

// One block of 256 threads per `per_block` items.
inline cuda::Launch streaming_launch(std::int64_t items, std::int64_t per_block) {
  return {.grid_x = (items + per_block - 1) / per_block, .block_x = 256};
}

// A kernel by stream() of rows.cuh over the first kTensors tensors: 16 bytes per thread, or twice that of values of two
// bytes.
template <std::size_t kTensors>
Result<CudaCall> prepare_stream(cuda::Context& context, const Problem& problem) {
  const std::int64_t values = row_count(problem) * problem.at("hidden");
  const cuda::Launch launch = streaming_launch(values, 256 * (type_bytes(problem.type) == 2 ? 16 : 4));
  return kernel_call<kTensors>(context, kernel_name(problem.op, problem.type), launch, values);
}

inline constexpr std::int64_t kRowThreads = 640;  // as in rows.cuh

// For Row of rows.cuh: a row is shared by lanes of a warp or by a block. Many rows: as few threads as keep the row in
// registers (4 accesses of 16 bytes each, 8 of single values). Few rows: fewer accesses per thread, to be done sooner.
inline cuda::Launch row_launch(const cuda::Context& context, std::int64_t rows, std::int64_t width, Type type) {
  const std::int64_t pack = 16 / type_bytes(type), multiprocessors = context.properties().multiprocessors;
  const bool packed = width % pack == 0;
  const std::int64_t accesses = packed ? width / pack : width, kept = packed ? 4 : 8;
  const std::int64_t each = rows <= 2 * multiprocessors ? 1 : (rows <= 4 * multiprocessors ? 2 : kept);
  const std::int64_t wanted = std::min((accesses + each - 1) / each, kRowThreads);
  if (wanted > 32) return {.grid_x = rows, .block_x = (wanted + 31) / 32 * 32};
  const auto lanes = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(wanted)));
  return {.grid_x = (rows * lanes + 127) / 128, .block_x = lanes, .block_y = 128 / lanes};
}

// A kernel over rows of `hidden` values, with the first kTensors tensors, rows, width and these arguments.
template <std::size_t kTensors, class... Arguments>
CudaCall row_call(cuda::Context& context, const Problem& problem, Arguments... arguments) {
  const std::int64_t rows = row_count(problem);
  const auto width = static_cast<std::int32_t>(problem.at("hidden"));
  return kernel_call<kTensors>(context, kernel_name(problem.op, problem.type),
                               row_launch(context, rows, width, problem.type), rows, width, arguments...);
}

// ---- on a CPU -------------------------------------------------------------------------------------------------------

inline constexpr std::int64_t kGrainValues = 16 * 1024;  // a CPU thread takes no less: waking it costs microseconds

inline float* floats(std::byte* tensor) { return reinterpret_cast<float*>(tensor); }

// What a CPU's threads share: whole rows, f(row) for each.
template <class F>
void each_row(const Team& team, std::int64_t rows, std::int64_t width, F f) {
  team.each(rows, std::max<std::int64_t>(1, kGrainValues / width), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) f(row);
  });
}

// f(0) + … + f(count - 1). Vectors add 1024 at a time in float32, which a long row's sum would lose digits in.
template <class F>
float vector_sum(std::int64_t count, F f) {
  constexpr std::int64_t kBlock = 1024;
  double total = 0;
  for (std::int64_t begin = 0; begin < count; begin += kBlock) {
    const std::int64_t end = begin + kBlock < count ? begin + kBlock : count;
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = begin; i < end; ++i) sum += f(i);
    total += sum;
  }
  return static_cast<float>(total);
}

}  // namespace llmprof::bench
