#pragma once
// cuBLASLt and cuBLAS, loaded by dlopen: matrix products by the fastest of many algorithms, found by timing them.
// Row-major, and the second operand stored as the weights of a layer are: c (m x n) = a (m x k) * b (n x k) transposed.

#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/cuda/context.h"
#include "bench/type.h"

namespace llmprof::bench::cuda {

struct Matmul {
  std::int64_t m = 0, n = 0, k = 0;
  Type type = Type::kBfloat16;  // of a and b; c is of product_type(type)
  std::int64_t batch = 1;
  std::int64_t a_stride = 0, b_stride = 0, c_stride = 0;  // values from one product of the batch to the next

  // Products whose operands lie one behind the other.
  static Matmul dense(Type type, std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch = 1) {
    return {m, n, k, type, batch, m * k, n * k, m * n};
  }
  auto operator<=>(const Matmul&) const = default;
};

// Groups of rows, one behind the other, each multiplied with a matrix of its own.
struct GroupedMatmul {
  std::vector<std::int64_t> rows;  // of each group; 0 is allowed
  std::int64_t n = 0, k = 0;
  Type type = Type::kBfloat16;
};

struct Search {
  int candidates = 32;         // asked of the heuristic; its first is what a plain call takes
  double limit_seconds = 0.1;  // of timing; the winner and the first are timed again beyond it
};

// To be called while the Context lives.
struct PreparedMatmul {
  std::function<Result<void>(Pointer a, Pointer b, Pointer c, Stream stream)> enqueue;
  std::string method;
  std::int64_t workspace_bytes = 0;
};

class Blas {
 public:
  explicit Blas(std::unique_ptr<struct BlasState> state);  // by open_blas
  ~Blas();
  Blas(const Blas&) = delete;
  Blas& operator=(const Blas&) = delete;

  const std::string& version() const;  // "cuBLASLt 13.1.0"

  // Times the algorithms for this product on random data with a cold cache; remembered, so the second time is free.
  // Needs memory for one set of operands; without it takes the heuristic's first and says so. kUnsupported where the
  // library or the device cannot.
  Result<PreparedMatmul> prepare(const Matmul& matmul, const Search& search = {});
  // In one call of cublasGemmGroupedBatchedEx. kUnsupported where the library has none.
  Result<PreparedMatmul> prepare_grouped(const GroupedMatmul& matmul);

 private:
  std::unique_ptr<BlasState> state_;
};

}  // namespace llmprof::bench::cuda
