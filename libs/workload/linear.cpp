#include "workload/linear.h"

#include <cblas.h>

#include <algorithm>

#include "workload/kernels.h"

namespace llmprof::workload {
namespace {

// Few rows: one matrix-vector product each. OpenBLAS 0.3.21 first repacks the whole matrix for a matrix product, which
// is worth it from about 8 rows on; with (2816, 1024) and 4 rows it took 31 ms against 15 ms.
constexpr std::int64_t kMostVectorRows = 4;

void start_with_bias(const Linear& linear, std::int64_t rows, Store store, float* y, ThreadPool& pool) {
  const std::int64_t min_rows = std::max<std::int64_t>(1, (1 << 15) / linear.out);
  pool.parallel_for(rows, min_rows, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      float* const out = y + row * linear.out;
      if (store == Store::kReplace) {
        std::copy_n(linear.bias, linear.out, out);
      } else {
        kernels().add(out, linear.bias, linear.out);
      }
    }
  });
}

}  // namespace

void apply(const Linear& linear, const float* x, std::int64_t rows, Store store, float* y, ThreadPool& pool) {
  if (linear.bias != nullptr) start_with_bias(linear, rows, store, y, pool);
  const float beta = linear.bias != nullptr || store == Store::kAccumulate ? 1.0F : 0.0F;
  const auto in = static_cast<blasint>(linear.in);
  const auto out = static_cast<blasint>(linear.out);
  if (rows > kMostVectorRows) {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, static_cast<blasint>(rows), out, in, 1.0F, x, in,
                linear.weight, in, beta, y, out);
    return;
  }
  for (std::int64_t row = 0; row < rows; ++row) {
    cblas_sgemv(CblasRowMajor, CblasNoTrans, out, in, 1.0F, linear.weight, in, x + row * linear.in, 1, beta,
                y + row * linear.out, 1);
  }
}

void set_blas_threads(std::int64_t threads) { openblas_set_num_threads(static_cast<int>(threads)); }

}  // namespace llmprof::workload
