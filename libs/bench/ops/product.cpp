// Operators that are one matrix product, y (m x n) = x (m x k) * w (n x k) transposed, `batch` times: w stored as the
// weights of a layer are. gemm has the sizes as axes; linear is a projection of a transformer, without bias.

#include "bench/ops/product.h"

#include <algorithm>
#include <random>

#include "bench/check.h"
#include "bench/cpu/blas.h"
#include "bench/cuda/blas.h"
#include "bench/ops/rows.h"

namespace llmprof::bench {

std::int64_t shortened(std::int64_t length, std::int64_t least) {
  return length <= least + 64 ? length : least + length % 64;
}

std::string product_cpu_method(const Problem& problem) { return multiply_method(problem.type); }

namespace {

// One row of a matrix in the device's memory, as float64.
Result<std::vector<double>> copy_row(cuda::Context& context, cuda::Pointer matrix, Type type, std::int64_t first,
                                     std::int64_t count) {
  std::vector<std::byte> raw(static_cast<std::size_t>(count * type_bytes(type)));
  LLMPROF_TRY(context.copy_out(raw.data(), matrix + static_cast<cuda::Pointer>(first * type_bytes(type)),
                               static_cast<std::int64_t>(raw.size())));
  std::vector<double> values(static_cast<std::size_t>(count));
  decode(raw.data(), type, values);
  return values;
}

struct Shape {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
};

// `Sizes` gives the shape of a problem. Tensors x, w, y, in this order.
template <class Sizes>
struct OneProduct : RowOperator {
  static constexpr Type kTypes[] = {Type::kBfloat16, Type::kFloat16,    Type::kFloat32, Type::kTf32,
                                    Type::kFloat64,  Type::kFloat8E4m3, Type::kInt8};
  static constexpr auto cpu_method_of = product_cpu_method;
  static constexpr std::span<const Type> kCpuTypes = kProductCpuTypes;

  static Result<void> check(const Problem& problem) {
    const Shape s = Sizes::shape(problem);
    const auto m = static_cast<double>(s.m), n = static_cast<double>(s.n), k = static_cast<double>(s.k);
    return check_values(problem, static_cast<double>(s.batch) * std::max({m * k, n * k, m * n}));
  }

  static std::vector<TensorSpec> tensors(const Problem& problem) {
    const Shape s = Sizes::shape(problem);
    const Fill fill{.scale = problem.type == Type::kInt8 ? 32.0 : 1.0};  // int8 uses most of its range
    return {{"x", Role::kIn, problem.type, s.batch * s.m * s.k, fill},
            {"w", Role::kIn, problem.type, s.batch * s.n * s.k, fill},
            {"y", Role::kOut, product_type(problem.type), s.batch * s.m * s.n}};
  }

  static model::KernelWork work(const Problem& problem) {
    const Shape s = Sizes::shape(problem);
    const auto bytes = static_cast<double>(type_bytes(problem.type));
    return model::product_work({.count = static_cast<double>(s.batch),
                                .m = static_cast<double>(s.m),
                                .n = static_cast<double>(s.n),
                                .k = static_cast<double>(s.k),
                                .a_bytes = bytes,
                                .b_bytes = bytes,
                                .c_bytes = static_cast<double>(type_bytes(product_type(problem.type)))});
  }

  static void reference(const Problem& problem, std::span<std::vector<double>> t) {
    const Shape s = Sizes::shape(problem);
    for (std::int64_t row = 0; row < s.batch * s.m; ++row) {
      const double *const x = t[0].data() + row * s.k, *const weights = t[1].data() + row / s.m * s.n * s.k;
      for (std::int64_t column = 0; column < s.n; ++column) {
        double sum = 0;
        for (std::int64_t i = 0; i < s.k; ++i) sum += x[i] * weights[column * s.k + i];
        t[2][static_cast<std::size_t>(row * s.n + column)] = sum;
      }
    }
  }

  static void cpu(const Problem& problem, std::span<std::byte* const> t, const Team& team) {
    const Shape s = Sizes::shape(problem);
    const std::int64_t bytes = type_bytes(problem.type);
    for (std::int64_t i = 0; i < s.batch; ++i) {
      multiply({.m = s.m, .n = s.n, .k = s.k, .type = problem.type}, t[0] + i * s.m * s.k * bytes,
               t[1] + i * s.n * s.k * bytes, t[2] + i * s.m * s.n * bytes, team);
    }
  }

  static Result<CudaCall> prepare(cuda::Context& context, const Problem& problem) {
    const Shape s = Sizes::shape(problem);
    LLMPROF_LET(cuda::Blas* const blas, context.blas());
    LLMPROF_LET(const cuda::PreparedMatmul prepared,
                blas->prepare(cuda::Matmul::dense(problem.type, s.m, s.n, s.k, s.batch)));
    return call_of(prepared);
  }

  static constexpr CudaImplementation kCuda[] = {{"cublaslt", prepare}};

  // 64 elements of the result at random, each recomputed in float64 from its row of x and its row of w.
  static Result<double> spot_check(cuda::Context& context, const Problem& problem, std::span<const cuda::Pointer> t) {
    constexpr int kElements = 64;
    const Shape s = Sizes::shape(problem);
    std::mt19937_64 random(1);
    const auto below = [&](std::int64_t limit) {
      return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(limit));
    };
    std::vector<double> results, expected;
    for (int i = 0; i < kElements; ++i) {
      const std::int64_t matrix = below(s.batch), row = matrix * s.m + below(s.m), column = below(s.n);
      const std::int64_t of_w = (matrix * s.n + column) * s.k;
      LLMPROF_LET(const std::vector<double> x, copy_row(context, t[0], problem.type, row * s.k, s.k));
      LLMPROF_LET(const std::vector<double> w, copy_row(context, t[1], problem.type, of_w, s.k));
      LLMPROF_LET(const std::vector<double> y,
                  copy_row(context, t[2], product_type(problem.type), row * s.n + column, 1));
      double sum = 0;
      for (std::size_t j = 0; j < x.size(); ++j) sum += x[j] * w[j];
      results.push_back(y.front());
      expected.push_back(sum);
    }
    return relative_error(results, expected);
  }
};

struct Gemm : OneProduct<Gemm> {
  static constexpr AxisSpec kAxes[] = {{"m", "1,16,128,1024,8192", 1, "rows of x: tokens"},
                                       {"n", "4096", 1, "rows of w: outputs"},
                                       {"k", "4096", 1, "columns of both: inputs"},
                                       {"batch", "1", 1, "products in one call"}};

  static Shape shape(const Problem& p) { return {p.at("m"), p.at("n"), p.at("k"), p.at("batch")}; }

  static Problem small(const Problem& p) {
    return p.with("m", shortened(p.at("m"), 64))
        .with("n", shortened(p.at("n"), 128))
        .with("k", shortened(p.at("k"), 256))
        .with_most("batch", 3);
  }
};

struct Linear : OneProduct<Linear> {
  static constexpr AxisSpec kAxes[] = {{"batch", "1", 1, "sequences"},
                                       {"seq", "1,128,2048", 1, "tokens per sequence"},
                                       {"in", "4096", 1, "values per token"},
                                       {"out", "4096", 1, "values per token after it"}};

  static Shape shape(const Problem& p) { return {row_count(p), p.at("out"), p.at("in")}; }

  static Result<void> check(const Problem& p) {
    LLMPROF_TRY(check_values(p, {"batch", "seq"}));
    return OneProduct::check(p);
  }

  static Problem small(const Problem& p) {
    return p.with_most("batch", 2)
        .with("seq", shortened(p.at("seq"), 32))
        .with("out", shortened(p.at("out"), 128))
        .with("in", shortened(p.at("in"), 256));
  }
};

}  // namespace

const Operator kGemm = describe<Gemm>("gemm", "matrix product y = x * w^T, alone or batched");
const Operator kLinear =
    describe<Linear>("linear", "projection of tokens, no bias: batch * seq rows of `in` values to `out` values");

}  // namespace llmprof::bench
