#pragma once
// Inside of Blas: the functions of cuBLASLt and cuBLAS that are called, their handles, one product's description.

#include <cublasLt.h>
#include <cublas_v2.h>

#include <map>
#include <string>
#include <vector>

#include "base/dynlib.h"
#include "bench/cuda/blas.h"

namespace llmprof::bench::cuda {

// clang-format off
#define LLMPROF_LT_CALLS(X) \
  X(create, cublasLtCreate) X(destroy, cublasLtDestroy) X(version, cublasLtGetVersion) \
  X(status_text, cublasLtGetStatusString) X(desc_create, cublasLtMatmulDescCreate) \
  X(desc_destroy, cublasLtMatmulDescDestroy) X(desc_set, cublasLtMatmulDescSetAttribute) \
  X(layout_create, cublasLtMatrixLayoutCreate) X(layout_destroy, cublasLtMatrixLayoutDestroy) \
  X(layout_set, cublasLtMatrixLayoutSetAttribute) X(preference_create, cublasLtMatmulPreferenceCreate) \
  X(preference_destroy, cublasLtMatmulPreferenceDestroy) X(preference_set, cublasLtMatmulPreferenceSetAttribute) \
  X(heuristic, cublasLtMatmulAlgoGetHeuristic) X(algorithm_get, cublasLtMatmulAlgoConfigGetAttribute) \
  X(matmul, cublasLtMatmul)
// clang-format on
LLMPROF_API(LtApi, LLMPROF_LT_CALLS)

// clang-format off
#define LLMPROF_CUBLAS_CALLS(X) \
  X(create, cublasCreate_v2) X(destroy, cublasDestroy_v2) X(set_stream, cublasSetStream_v2) \
  X(set_workspace, cublasSetWorkspace_v2) X(gemm, cublasGemmEx_64) X(gemm_batched, cublasGemmStridedBatchedEx_64) \
  X(gemm_grouped, cublasGemmGroupedBatchedEx, base::Need::kOptional)
// clang-format on
LLMPROF_API(CublasApi, LLMPROF_CUBLAS_CALLS)

struct BlasState {
  Context& context;
  LtApi lt{};
  CublasApi cublas{};
  cublasLtHandle_t lt_handle = nullptr;
  cublasHandle_t handle = nullptr;  // nullptr: cuBLAS itself was not found
  Buffer workspace;                 // of all calls: they are on one stream
  std::string version;
  std::map<Matmul, PreparedMatmul> prepared;

  explicit BlasState(Context& of) : context(of) {}
  ~BlasState();
  Result<void> check(cublasStatus_t status, const char* what) const;
};

// 1 and 0 in the type that a product is scaled in.
struct Scalar {
  explicit Scalar(cudaDataType_t type, int value);
  const void* data() const { return bytes_; }

 private:
  alignas(8) std::byte bytes_[8] = {};
};

struct BlasTypes {
  cudaDataType_t operand, result, scale;
  cublasComputeType_t compute;
};
BlasTypes blas_types(Type type);

// One way to compute a product: an algorithm of cuBLASLt, or cuBLAS with its own choice.
struct Algorithm {
  bool plain = false;  // cublasGemmEx: what torch.matmul calls
  cublasLtMatmulAlgo_t algo{};
  std::size_t workspace_bytes = 0;
  int rank = 0;  // in the heuristic's order, from 0
};

// The descriptors of one product. Column-major, as the library sees it: c^T (n x m) = b (as k x n, transposed) * a^T.
class MatmulPlan {
 public:
  static Result<std::shared_ptr<MatmulPlan>> make(BlasState& blas, const Matmul& matmul);
  ~MatmulPlan();
  MatmulPlan(const MatmulPlan&) = delete;
  MatmulPlan& operator=(const MatmulPlan&) = delete;

  // The plain call first, where there is one, then the heuristic's candidates in its order. Never empty.
  Result<std::vector<Algorithm>> algorithms(int candidates) const;
  Result<void> enqueue(const Algorithm& algorithm, Pointer a, Pointer b, Pointer c, Stream stream) const;
  std::string describe(const Algorithm& algorithm) const;  // "cuBLASLt 13.1.0 algorithm 66, tile 603"
  const Matmul& matmul() const { return matmul_; }

 private:
  MatmulPlan(BlasState& blas, const Matmul& matmul);
  Result<void> describe_operands();
  Result<void> layout(cublasLtMatrixLayout_t* to, cudaDataType_t type, std::int64_t rows, std::int64_t columns,
                      std::int64_t stride) const;
  Result<void> enqueue_plain(Pointer a, Pointer b, Pointer c) const;

  BlasState& blas_;
  Matmul matmul_;
  BlasTypes types_;
  Scalar one_, zero_;
  cublasLtMatmulDesc_t desc_ = nullptr;
  cublasLtMatrixLayout_t weights_ = nullptr, inputs_ = nullptr, outputs_ = nullptr;
};

struct Found {
  Algorithm algorithm;
  std::string how;  // "fastest of 25 timed"
};
// The fastest of a product's algorithms, by timing them; never slower than the plain call or the heuristic's first.
Result<Found> fastest(BlasState& blas, const MatmulPlan& plan, const Search& search);

}  // namespace llmprof::bench::cuda
