#pragma once
// What operators that multiply matrices share.

#include "bench/cuda/blas.h"
#include "bench/operator.h"

namespace llmprof::bench {

inline constexpr Type kProductCpuTypes[] = {Type::kFloat32, Type::kFloat64};

// A length of about `least` with what `length` leaves over 64, if it is longer: reaches the same paths, costs less.
std::int64_t shortened(std::int64_t length, std::int64_t least);

// A product of cuBLAS on the first three tensors.
inline CudaCall call_of(const cuda::PreparedMatmul& prepared) {
  return {.enqueue = [enqueue = prepared.enqueue](std::span<const cuda::Pointer> t,
                                                  cuda::Stream stream) { return enqueue(t[0], t[1], t[2], stream); },
          .method = prepared.method,
          .workspace_bytes = prepared.workspace_bytes};
}

std::string product_cpu_method(const Problem& problem);

}  // namespace llmprof::bench
