#pragma once
// OpenBLAS, loaded by dlopen: what matrix products on a CPU run through where users have it. Row-major, and the second
// operand stored as the weights of a layer are: c (m x n) = a (m x k) * b (n x k) transposed.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "bench/team.h"
#include "bench/type.h"

namespace llmprof::bench {

class CpuBlas {
 public:
  ~CpuBlas();
  // Sizes must fit in 32 bits, as the library's own do: fits() says so.
  static bool fits(std::int64_t m, std::int64_t n, std::int64_t k);
  void sgemm(std::int64_t m, std::int64_t n, std::int64_t k, const float* a, const float* b, float* c) const;
  void dgemm(std::int64_t m, std::int64_t n, std::int64_t k, const double* a, const double* b, double* c) const;
  void set_threads(std::int64_t threads) const;
  const std::string& version() const;  // "OpenBLAS 0.3.21 (SkylakeX)": the core is whose kernels run

 private:
  friend Result<CpuBlas*> cpu_blas();
  struct State;
  explicit CpuBlas(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Loaded on first use, kept for the life of the process. kNotFound where there is none.
Result<CpuBlas*> cpu_blas();

struct CpuProduct {
  std::int64_t m = 0, n = 0, k = 0;
  Type type = Type::kFloat32;  // or float64
};
// By OpenBLAS with the team's number of threads, else by a loop over blocks that the team shares.
void multiply(const CpuProduct& product, const std::byte* a, const std::byte* b, std::byte* c, const Team& team);
std::string multiply_method(Type type);  // "OpenBLAS 0.3.21 (SkylakeX) sgemm", "loop over blocks, no OpenBLAS found"

}  // namespace llmprof::bench
