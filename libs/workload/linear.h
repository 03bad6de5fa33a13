#pragma once
// y = x · Wᵀ + b: the only way weights are multiplied, so that the BLAS calls of a pass are its weight products.

#include <cstdint>

#include "workload/thread_pool.h"

namespace llmprof::workload {

struct Linear {
  const float* weight = nullptr;  // (out, in)
  const float* bias = nullptr;    // (out), or none
  std::int64_t in = 0;
  std::int64_t out = 0;
};

enum class Store : std::uint8_t {
  kReplace,     // y  = x · Wᵀ + b
  kAccumulate,  // y += x · Wᵀ + b: the residual stream costs no pass of its own
};

// x (rows, in), y (rows, out).
void apply(const Linear& linear, const float* x, std::int64_t rows, Store store, float* y, ThreadPool& pool);

// Threads of the BLAS library for this process.
void set_blas_threads(std::int64_t threads);

}  // namespace llmprof::workload
