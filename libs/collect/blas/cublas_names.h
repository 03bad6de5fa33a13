#pragma once
// Names in the log for the numbers of cuBLAS: types as everywhere in llmprof, the rest as the headers have them.
// Each is interned once; 0 for a number that is not known.

#include "wire/collector_v1.h"

namespace llmprof::collect::blas {

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
