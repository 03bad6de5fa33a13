// One product as cuBLASLt wants it described, its candidate algorithms, and the call.

#include <fmt/format.h>

#include <cstring>

#include "base/errors.h"
#include "bench/cuda/blas_library.h"

namespace llmprof::bench::cuda {
namespace {

template <class T>
std::byte* write(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
  return to;
}

struct Preference {
  const LtApi& api;
  cublasLtMatmulPreference_t handle = nullptr;
  explicit Preference(const LtApi& of) : api(of) {}
  ~Preference() {
    if (handle != nullptr) api.preference_destroy(handle);
  }
};

}  // namespace

Scalar::Scalar(cudaDataType_t type, int value) {
  if (type == CUDA_R_64F) write(bytes_, static_cast<double>(value));
  if (type == CUDA_R_32F) write(bytes_, static_cast<float>(value));
  if (type == CUDA_R_32I) write(bytes_, value);
}

BlasTypes blas_types(Type type) {
  constexpr BlasTypes kTypes[] = {{CUDA_R_64F, CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F},            // float64
                                  {CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F},            // float32
                                  {CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32},  // tf32
                                  {CUDA_R_16F, CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F},            // float16
                                  {CUDA_R_16BF, CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F},          // bfloat16
                                  {CUDA_R_8F_E4M3, CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F},       // float8_e4m3
                                  {CUDA_R_8I, CUDA_R_32I, CUDA_R_32I, CUBLAS_COMPUTE_32I},             // int8
                                  {CUDA_R_8I, CUDA_R_32I, CUDA_R_32I, CUBLAS_COMPUTE_32I}};            // int32
  return kTypes[static_cast<std::size_t>(type)];
}

MatmulPlan::MatmulPlan(BlasState& blas, const Matmul& matmul)
    : blas_(blas), matmul_(matmul), types_(blas_types(matmul.type)), one_(types_.scale, 1), zero_(types_.scale, 0) {}

MatmulPlan::~MatmulPlan() {
  if (desc_ != nullptr) blas_.lt.desc_destroy(desc_);
  for (cublasLtMatrixLayout_t layout : {weights_, inputs_, outputs_}) {
    if (layout != nullptr) blas_.lt.layout_destroy(layout);
  }
}

Result<std::shared_ptr<MatmulPlan>> MatmulPlan::make(BlasState& blas, const Matmul& matmul) {
  std::shared_ptr<MatmulPlan> plan(new MatmulPlan(blas, matmul));
  LLMPROF_TRY(plan->describe_operands());
  return plan;
}

Result<void> MatmulPlan::layout(cublasLtMatrixLayout_t* to, cudaDataType_t type, std::int64_t rows,
                                std::int64_t columns, std::int64_t stride) const {
  LLMPROF_TRY(blas_.check(
      blas_.lt.layout_create(to, type, static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(columns), rows),
      "cublasLtMatrixLayoutCreate"));
  if (matmul_.batch == 1) return {};
  const auto count = static_cast<std::int32_t>(matmul_.batch);
  LLMPROF_TRY(blas_.check(blas_.lt.layout_set(*to, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count),
                          "cublasLtMatrixLayoutSetAttribute"));
  return blas_.check(blas_.lt.layout_set(*to, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride),
                     "cublasLtMatrixLayoutSetAttribute");
}

Result<void> MatmulPlan::describe_operands() {
  const Matmul& m = matmul_;
  if (m.batch > std::numeric_limits<std::int32_t>::max()) {
    return unsupported_error("cuBLASLt counts a batch in 32 bits: {} is more", m.batch);
  }
  LLMPROF_TRY(blas_.check(blas_.lt.desc_create(&desc_, types_.compute, types_.scale), "cublasLtMatmulDescCreate"));
  const cublasOperation_t transposed = CUBLAS_OP_T;
  LLMPROF_TRY(blas_.check(blas_.lt.desc_set(desc_, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed),
                          "transposing"));
  if (m.type == Type::kFloat8E4m3) {
    const std::int8_t fast = 1;  // partial sums in the tensor core's own format, as inference engines choose
    LLMPROF_TRY(blas_.check(blas_.lt.desc_set(desc_, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast, sizeof fast),
                            "fast accumulation"));
  }
  LLMPROF_TRY(layout(&weights_, types_.operand, m.k, m.n, m.b_stride));
  LLMPROF_TRY(layout(&inputs_, types_.operand, m.k, m.m, m.a_stride));
  return layout(&outputs_, types_.result, m.n, m.m, m.c_stride);
}

Result<std::vector<Algorithm>> MatmulPlan::algorithms(int candidates) const {
  Preference preference(blas_.lt);
  LLMPROF_TRY(blas_.check(blas_.lt.preference_create(&preference.handle), "cublasLtMatmulPreferenceCreate"));
  const auto workspace = static_cast<std::uint64_t>(blas_.workspace.bytes());
  LLMPROF_TRY(blas_.check(blas_.lt.preference_set(preference.handle, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                  &workspace, sizeof workspace),
                          "limiting the workspace"));
  std::vector<cublasLtMatmulHeuristicResult_t> results(static_cast<std::size_t>(candidates));
  int count = 0;
  const cublasStatus_t status = blas_.lt.heuristic(blas_.lt_handle, desc_, weights_, inputs_, outputs_, outputs_,
                                                   preference.handle, candidates, results.data(), &count);
  std::vector<Algorithm> found;
  const bool one_byte = type_bytes(matmul_.type) == 1;
  if (blas_.handle != nullptr && !one_byte) {
    found.push_back({.plain = true, .workspace_bytes = static_cast<std::size_t>(workspace)});
  }
  for (int i = 0; i < count && status == CUBLAS_STATUS_SUCCESS; ++i) {
    if (results[i].state != CUBLAS_STATUS_SUCCESS) continue;
    found.push_back({.algo = results[i].algo, .workspace_bytes = results[i].workspaceSize, .rank = i});
  }
  if (!found.empty()) return found;
  const Matmul& m = matmul_;
  return unsupported_error("{} has no algorithm for a {} product of m={} n={} k={} batch={}: {}", blas_.version,
                           type_name(m.type), m.m, m.n, m.k, m.batch, blas_.lt.status_text(status));
}

Result<void> MatmulPlan::enqueue_plain(Pointer a, Pointer b, Pointer c) const {
  const Matmul& m = matmul_;
  const auto *x = reinterpret_cast<const void*>(a), *w = reinterpret_cast<const void*>(b);
  auto* const y = reinterpret_cast<void*>(c);
  if (m.batch == 1) {
    return blas_.check(blas_.cublas.gemm(blas_.handle, CUBLAS_OP_T, CUBLAS_OP_N, m.n, m.m, m.k, one_.data(), w,
                                         types_.operand, m.k, x, types_.operand, m.k, zero_.data(), y, types_.result,
                                         m.n, types_.compute, CUBLAS_GEMM_DEFAULT),
                       "cublasGemmEx");
  }
  return blas_.check(
      blas_.cublas.gemm_batched(blas_.handle, CUBLAS_OP_T, CUBLAS_OP_N, m.n, m.m, m.k, one_.data(), w, types_.operand,
                                m.k, m.b_stride, x, types_.operand, m.k, m.a_stride, zero_.data(), y, types_.result,
                                m.n, m.c_stride, m.batch, types_.compute, CUBLAS_GEMM_DEFAULT),
      "cublasGemmStridedBatchedEx");
}

Result<void> MatmulPlan::enqueue(const Algorithm& algorithm, Pointer a, Pointer b, Pointer c, Stream stream) const {
  if (algorithm.plain) return enqueue_plain(a, b, c);
  auto* const y = reinterpret_cast<void*>(c);
  return blas_.check(blas_.lt.matmul(blas_.lt_handle, desc_, one_.data(), reinterpret_cast<const void*>(b), weights_,
                                     reinterpret_cast<const void*>(a), inputs_, zero_.data(), y, outputs_, y, outputs_,
                                     &algorithm.algo, reinterpret_cast<void*>(blas_.workspace.pointer()),
                                     algorithm.workspace_bytes, reinterpret_cast<cudaStream_t>(stream)),
                     "cublasLtMatmul");
}

std::string MatmulPlan::describe(const Algorithm& algorithm) const {
  if (algorithm.plain) {
    return fmt::format("{}, cublasGemm{}Ex's own choice", blas_.version, matmul_.batch == 1 ? "" : "StridedBatched");
  }
  const auto get = [&](cublasLtMatmulAlgoConfigAttributes_t attribute) {
    std::int32_t value = 0;
    std::size_t written = 0;
    blas_.lt.algorithm_get(&algorithm.algo, attribute, &value, sizeof value, &written);
    return value;
  };
  const std::int32_t split = get(CUBLASLT_ALGO_CONFIG_SPLITK_NUM);
  return fmt::format("{} algorithm {} (tile {}, stages {}{}), number {} of the heuristic's", blas_.version,
                     get(CUBLASLT_ALGO_CONFIG_ID), get(CUBLASLT_ALGO_CONFIG_TILE_ID),
                     get(CUBLASLT_ALGO_CONFIG_STAGES_ID), split > 1 ? fmt::format(", k split by {}", split) : "",
                     algorithm.rank + 1);
}

}  // namespace llmprof::bench::cuda
