#pragma once
// From the words of a successful cuBLAS call to its records.

#include "collect/blas/call.h"
#include "collect/blas/cublas_abi.h"
#include "wire/collector_v1.h"

namespace llmprof::collect::blas {

struct GpuCall {
  const Site* site;
  const Word* words;
  std::uint64_t begin_ns, end_ns;
  const Signature* signature;
  Types types;  // that the function's name says
  int bits;     // of an integer
};

// One kGpuGemm record, or one for each group of a grouped call. Nothing that may be device memory is looked at.
void record_cublas(const llmprof_collector_table* table, const GpuCall& call);
void record_cublas_lt(const llmprof_collector_table* table, const GpuCall& call);

// Names in the log for the numbers of cuBLAS: types as everywhere in llmprof, the rest as the headers have them.
// Each is interned once; 0 for a number that is not known.

wire::StringId type_id(const llmprof_collector_table* table, std::int32_t type);        // cudaDataType
wire::StringId compute_id(const llmprof_collector_table* table, std::int32_t compute);  // cublasComputeType_t
wire::StringId epilogue_id(const llmprof_collector_table* table, std::int32_t epilogue);

// How A and B are scaled (cublasLtMatmulMatrixScale_t); -1: not at all.
wire::StringId scaling_id(const llmprof_collector_table* table, std::int32_t a, std::int32_t b);

struct Algorithm {
  std::int32_t number, tile, stages, split_k, cluster;  // -1: cannot be asked
};
wire::StringId algorithm_id(const llmprof_collector_table* table, const Algorithm& algorithm);

}  // namespace llmprof::collect::blas
