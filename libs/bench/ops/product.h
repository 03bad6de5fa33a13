#pragma once
// What operators that are one matrix product share: y (m x n) = x (m x k) * w (n x k) transposed, `batch` times.
// Tensors x, w, y, in this order.

#include <span>
#include <string>
#include <vector>

#include "bench/operator.h"

namespace llmprof::bench {

struct ProductShape {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  Type type = Type::kBfloat16;
};

inline constexpr Type kProductTypes[] = {Type::kBfloat16, Type::kFloat16,    Type::kFloat32, Type::kTf32,
                                         Type::kFloat64,  Type::kFloat8E4m3, Type::kInt8};
inline constexpr Type kProductCpuTypes[] = {Type::kFloat32, Type::kFloat64};

// Random data of a product's operands: int8 uses most of its range.
Fill operand_fill(Type type);
// A length of about `least` with what `length` leaves over 64, if it is longer: reaches the same paths, costs less.
std::int64_t shortened(std::int64_t length, std::int64_t least);

Result<void> check_product(const Problem& problem, const ProductShape& shape);
std::vector<TensorSpec> product_tensors(const ProductShape& shape);
model::KernelWork work_of_product(const ProductShape& shape);
void product_reference(const ProductShape& shape, std::span<std::vector<double>> tensors);
std::string product_cpu_method(const Problem& problem);
void product_on_cpu(const ProductShape& shape, std::span<std::byte* const> tensors, const Team& team);
Result<CudaCall> prepare_product(cuda::Context& context, const ProductShape& shape);
// 64 elements of the result at random, each recomputed in float64 from its row of x and its row of w.
Result<double> spot_check_product(cuda::Context& context, const ProductShape& shape,
                                  std::span<const cuda::Pointer> tensors);

}  // namespace llmprof::bench
