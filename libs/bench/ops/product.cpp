#include "bench/ops/product.h"

#include <algorithm>
#include <random>

#include "bench/check.h"
#include "bench/cpu_blas.h"
#include "bench/cuda/blas.h"
#include "bench/ops/rows.h"

namespace llmprof::bench {
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

}  // namespace

Fill operand_fill(Type type) { return {.scale = type == Type::kInt8 ? 32.0 : 1.0}; }

std::int64_t shortened(std::int64_t length, std::int64_t least) {
  return length <= least + 64 ? length : least + length % 64;
}

Result<void> check_product(const Problem& problem, const ProductShape& s) {
  const auto m = static_cast<double>(s.m), n = static_cast<double>(s.n), k = static_cast<double>(s.k);
  return check_values(problem, static_cast<double>(s.batch) * std::max({m * k, n * k, m * n}));
}

std::vector<TensorSpec> product_tensors(const ProductShape& s) {
  const Fill fill = operand_fill(s.type);
  return {{.name = "x", .type = s.type, .elements = s.batch * s.m * s.k, .fill = fill},
          {.name = "w", .type = s.type, .elements = s.batch * s.n * s.k, .fill = fill},
          {.name = "y", .role = Role::kOut, .type = product_type(s.type), .elements = s.batch * s.m * s.n}};
}

model::KernelWork work_of_product(const ProductShape& s) {
  const auto bytes = static_cast<double>(type_bytes(s.type));
  return model::product_work({.count = static_cast<double>(s.batch),
                              .m = static_cast<double>(s.m),
                              .n = static_cast<double>(s.n),
                              .k = static_cast<double>(s.k),
                              .a_bytes = bytes,
                              .b_bytes = bytes,
                              .c_bytes = static_cast<double>(type_bytes(product_type(s.type)))});
}

void product_reference(const ProductShape& s, std::span<std::vector<double>> tensors) {
  for (std::int64_t row = 0; row < s.batch * s.m; ++row) {
    const double* const x = tensors[0].data() + row * s.k;
    const double* const weights = tensors[1].data() + row / s.m * s.n * s.k;
    for (std::int64_t column = 0; column < s.n; ++column) {
      double sum = 0;
      for (std::int64_t i = 0; i < s.k; ++i) sum += x[i] * weights[column * s.k + i];
      tensors[2][static_cast<std::size_t>(row * s.n + column)] = sum;
    }
  }
}

std::string product_cpu_method(const Problem& problem) { return multiply_method(problem.type); }

void product_on_cpu(const ProductShape& s, std::span<std::byte* const> tensors, const Team& team) {
  const std::int64_t bytes = type_bytes(s.type);
  for (std::int64_t i = 0; i < s.batch; ++i) {
    multiply({.m = s.m, .n = s.n, .k = s.k, .type = s.type}, tensors[0] + i * s.m * s.k * bytes,
             tensors[1] + i * s.n * s.k * bytes, tensors[2] + i * s.m * s.n * bytes, team);
  }
}

Result<CudaCall> prepare_product(cuda::Context& context, const ProductShape& s) {
  LLMPROF_LET(cuda::Blas* const blas, context.blas());
  LLMPROF_LET(const cuda::PreparedMatmul prepared, blas->prepare(cuda::Matmul::dense(s.type, s.m, s.n, s.k, s.batch)));
  return CudaCall{
      .enqueue = [enqueue = prepared.enqueue](std::span<const cuda::Pointer> t,
                                              cuda::Stream stream) { return enqueue(t[0], t[1], t[2], stream); },
      .method = prepared.method,
      .workspace_bytes = prepared.workspace_bytes};
}

Result<double> spot_check_product(cuda::Context& context, const ProductShape& s,
                                  std::span<const cuda::Pointer> tensors) {
  constexpr int kElements = 64;
  std::mt19937_64 random(1);
  const auto below = [&](std::int64_t limit) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(limit));
  };
  std::vector<double> results, expected;
  for (int i = 0; i < kElements; ++i) {
    const std::int64_t matrix = below(s.batch), row = matrix * s.m + below(s.m), column = below(s.n);
    LLMPROF_LET(const std::vector<double> x, copy_row(context, tensors[0], s.type, row * s.k, s.k));
    LLMPROF_LET(const std::vector<double> w, copy_row(context, tensors[1], s.type, (matrix * s.n + column) * s.k, s.k));
    LLMPROF_LET(const std::vector<double> y,
                copy_row(context, tensors[2], product_type(s.type), row * s.n + column, 1));
    double sum = 0;
    for (std::size_t j = 0; j < x.size(); ++j) sum += x[j] * w[j];
    results.push_back(y.front());
    expected.push_back(sum);
  }
  return relative_error(results, expected);
}

}  // namespace llmprof::bench
