#pragma once
// Inside of Blas: the functions of cuBLASLt and cuBLAS that are called, their handles, one product's description.

#include <cublasLt.h>
#include <cublas_v2.h>

#include <map>
#include <string>
#include <vector>

#include "bench/cuda/blas.h"

namespace llmprof::bench::cuda {

struct LtApi {
  decltype(&::cublasLtCreate) create = nullptr;
  decltype(&::cublasLtDestroy) destroy = nullptr;
  decltype(&::cublasLtGetVersion) version = nullptr;
  decltype(&::cublasLtGetStatusString) status_text = nullptr;
  decltype(&::cublasLtMatmulDescCreate) desc_create = nullptr;
  decltype(&::cublasLtMatmulDescDestroy) desc_destroy = nullptr;
  decltype(&::cublasLtMatmulDescSetAttribute) desc_set = nullptr;
  decltype(&::cublasLtMatrixLayoutCreate) layout_create = nullptr;
  decltype(&::cublasLtMatrixLayoutDestroy) layout_destroy = nullptr;
  decltype(&::cublasLtMatrixLayoutSetAttribute) layout_set = nullptr;
  decltype(&::cublasLtMatmulPreferenceCreate) preference_create = nullptr;
  decltype(&::cublasLtMatmulPreferenceDestroy) preference_destroy = nullptr;
  decltype(&::cublasLtMatmulPreferenceSetAttribute) preference_set = nullptr;
  decltype(&::cublasLtMatmulAlgoGetHeuristic) heuristic = nullptr;
  decltype(&::cublasLtMatmulAlgoConfigGetAttribute) algorithm_get = nullptr;
  decltype(&::cublasLtMatmul) matmul = nullptr;
};

struct CublasApi {
  decltype(&::cublasCreate_v2) create = nullptr;
  decltype(&::cublasDestroy_v2) destroy = nullptr;
  decltype(&::cublasSetStream_v2) set_stream = nullptr;
  decltype(&::cublasSetWorkspace_v2) set_workspace = nullptr;
  decltype(&::cublasGemmEx_64) gemm = nullptr;
  decltype(&::cublasGemmStridedBatchedEx_64) gemm_batched = nullptr;
  decltype(&::cublasGemmGroupedBatchedEx) gemm_grouped = nullptr;  // from 12.5 on
};

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
