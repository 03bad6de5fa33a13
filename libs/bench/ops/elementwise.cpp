// Operators that go through memory value by value: copy, x + residual, gelu exact and by tanh, silu(gate) · up.

#include <cstring>
#include <numbers>

#include "bench/ops/cpu_math.h"
#include "bench/ops/rows.h"

namespace llmprof::bench {
namespace {

// y = x from one place in a device's memory to another: the bandwidth that everything else is held against.
struct Copy : RowOperator {
  static constexpr AxisSpec kAxes[] = {{"values", "64k,16M,256M", 1, "values to copy"}};
  static constexpr std::string_view kCpuMethod = "memcpy";
  static constexpr std::optional<double> kTolerance = 0;

  static Result<void> check(const Problem& problem) { return check_values(problem, {"values"}); }

  static std::int64_t bytes_of(const Problem& problem) { return problem.at("values") * type_bytes(problem.type); }

  static std::vector<TensorSpec> tensors(const Problem& problem) {
    return {{"x", Role::kIn, problem.type, problem.at("values")},
            {"y", Role::kOut, problem.type, problem.at("values")}};
  }

  // Many or few values are copied by the same code; what is left at the end stays.
  static Problem small(const Problem& problem) {
    return problem.with_most("values", 100'000 + problem.at("values") % 1000);
  }

  static void reference(const Problem&, std::span<std::vector<double>> t) { t[1] = t[0]; }

  static void cpu(const Problem& problem, std::span<std::byte* const> t, const Team& team) {
    team.each(bytes_of(problem), kGrainValues * 4, [&](std::int64_t begin, std::int64_t end) {
      std::memcpy(t[1] + begin, t[0] + begin, static_cast<std::size_t>(end - begin));
    });
  }

  static Result<CudaCall> prepare_kernel(cuda::Context& context, const Problem& problem) {
    return kernel_call<2>(context, "copy_bytes", streaming_launch(bytes_of(problem), 256 * 16), bytes_of(problem));
  }

  static Result<CudaCall> prepare_driver(cuda::Context& context, const Problem& problem) {
    return CudaCall{
        .enqueue = [&context, bytes = bytes_of(problem)](std::span<const cuda::Pointer> t,
                                                         cuda::Stream) { return context.copy(t[1], t[0], bytes); },
        .method = "cuMemcpyDtoDAsync"};
  }

  static constexpr CudaImplementation kCuda[] = {{"kernel", prepare_kernel}, {"driver", prepare_driver}};
};

// What follows every block of a transformer that is not fused into the product before it.
struct ResidualAdd : RowOperator {
  static std::vector<TensorSpec> tensors(const Problem& problem) {
    const std::int64_t values = row_count(problem) * problem.at("hidden");
    return {{"x", Role::kIn, problem.type, values},
            {"residual", Role::kIn, problem.type, values},
            {"y", Role::kOut, problem.type, values}};
  }

  static void reference(const Problem&, std::span<std::vector<double>> t) {
    for (std::size_t i = 0; i < t[2].size(); ++i) t[2][i] = t[0][i] + t[1][i];
  }

  static void cpu(const Problem& problem, std::span<std::byte* const> t, const Team& team) {
    const float *x = floats(t[0]), *residual = floats(t[1]);
    float* y = floats(t[2]);
    team.each(row_count(problem) * problem.at("hidden"), kGrainValues, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) y[i] = x[i] + residual[i];
    });
  }

  static constexpr auto prepare = prepare_stream<3>;
};

// y = gelu(x) between the two products of a feed-forward layer: exact, x Φ(x), and the approximation by tanh that many
// models were trained with. Two operators, because a model has the one or the other.
template <double (*kExact)(double), float (*kFast)(float)>
struct Activation : RowOperator {
  static std::vector<TensorSpec> tensors(const Problem& problem) {
    const std::int64_t values = row_count(problem) * problem.at("hidden");
    return {{"x", Role::kIn, problem.type, values}, {"y", Role::kOut, problem.type, values}};
  }

  static void reference(const Problem&, std::span<std::vector<double>> t) {
    std::ranges::transform(t[0], t[1].begin(), kExact);
  }

  static void cpu(const Problem& problem, std::span<std::byte* const> t, const Team& team) {
    const float* x = floats(t[0]);
    float* y = floats(t[1]);
    team.each(row_count(problem) * problem.at("hidden"), kGrainValues, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) y[i] = kFast(x[i]);
    });
  }

  static constexpr auto prepare = prepare_stream<2>;
};

double exact_gelu_tanh(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}

// y = silu(gate) · up between the products of a gated feed-forward layer. A row holds gate, then up: engines compute
// both by one product.
struct SiluMul : RowOperator {
  static constexpr AxisSpec kAxes[] = {
      {"batch", "1", 1, "sequences"},
      {"seq", "1,128,2048", 1, "tokens per sequence"},
      {"intermediate", "14336", 1, "values per token of the result: half of the input's"}};

  static Result<void> check(const Problem& problem) { return check_sizes(problem, "intermediate"); }

  static std::vector<TensorSpec> tensors(const Problem& problem) {
    const std::int64_t values = row_count(problem) * problem.at("intermediate");
    return {{"gate_up", Role::kIn, problem.type, 2 * values}, {"y", Role::kOut, problem.type, values}};
  }

  static void reference(const Problem& problem, std::span<std::vector<double>> t) {
    const auto width = static_cast<std::size_t>(problem.at("intermediate"));
    for (std::size_t i = 0; i < t[1].size(); ++i) {
      const std::size_t at = i / width * 2 * width + i % width;
      const double gate = t[0][at], up = t[0][at + width];
      t[1][i] = gate / (1 + std::exp(-gate)) * up;
    }
  }

  static void cpu(const Problem& problem, std::span<std::byte* const> t, const Team& team) {
    const std::int64_t width = problem.at("intermediate");
    each_row(team, row_count(problem), width, [&](std::int64_t row) {
      const float *gate = floats(t[0]) + row * 2 * width, *up = gate + width;
      float* y = floats(t[1]) + row * width;
      for (std::int64_t i = 0; i < width; ++i) y[i] = vector_silu(gate[i]) * up[i];
    });
  }

  static Result<CudaCall> prepare(cuda::Context& context, const Problem& problem) {
    const std::int64_t width = problem.at("intermediate"), bytes = type_bytes(problem.type);
    // Four accesses per thread, where that still gives every multiprocessor its share.
    const std::int64_t accesses = row_count(problem) * width * bytes / 16;
    const std::int32_t unroll = accesses >= 8 * 256 * context.properties().multiprocessors ? 4 : 1;
    const std::int64_t per_block = 256 * 16 / bytes * unroll, parts = (width + per_block - 1) / per_block;
    return kernel_call<2>(context, kernel_name("silu_mul", problem.type),
                          {.grid_x = row_count(problem) * parts, .block_x = 256}, width,
                          static_cast<std::int32_t>(parts), unroll);
  }
};

}  // namespace

const Operator kCopy = describe<Copy>("copy", "y = x from memory to memory of one device");
const Operator kResidualAdd = describe<ResidualAdd>("residual_add", "y = x + residual");
const Operator kGelu = describe<Activation<exact_gelu, vector_gelu>>("gelu", "y = x / 2 * (1 + erf(x / sqrt(2)))");
const Operator kGeluTanh =
    describe<Activation<exact_gelu_tanh, vector_gelu_tanh>>("gelu_tanh", "y = gelu(x) by its approximation with tanh");
const Operator kSiluMul = describe<SiluMul>("silu_mul", "y = silu(gate) * up");

}  // namespace llmprof::bench
