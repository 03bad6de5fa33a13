#pragma once
// A fake libcublas.so.N and libcublasLt.so.N for tests: every function notes the words it was called with and answers
// what it was told to. Descriptors are plain structures.

#include <cstdint>

#include "collect/blas/call.h"

struct FakeLayout {
  std::int32_t type, order;
  std::uint64_t rows, columns;
  std::int32_t batch;
  std::uint64_t unused[4];
};
static_assert(sizeof(FakeLayout) == 64);

struct FakeDescriptor {
  std::int32_t compute, trans_a, trans_b, epilogue;
  const void* scale_a;
  const void* scale_b;
  std::int32_t mode_a, mode_b;
};

struct FakeAlgorithm {
  std::int32_t number, tile, stages, split_k, cluster;
  std::int32_t unused[11];
};
static_assert(sizeof(FakeAlgorithm) == 64);

struct FakeState {
  int version;  // of the library
  llmprof::collect::blas::Function function;
  int count;
  std::int64_t words[23];  // of the last call
  std::int64_t status;     // that the next call answers
  std::int32_t math_mode;
  int asked;  // attributes
  void (*callback)();
  void* lt;                      // cublasLtMatmul, to which the work is left; null: to nobody
  const std::int64_t* lt_words;  // that it is called with
};
