#include "workload/cuda/blas.h"

#include <cublasLt.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "base/cuda_libraries.h"
#include "base/dynlib.h"
#include "base/errors.h"

namespace llmprof::workload::cuda {
namespace {

constexpr std::int64_t kWorkspaceBytes = std::int64_t{32} << 20;

// The functions of cuBLASLt that are called.
// clang-format off
#define LLMPROF_LT_CALLS(X) \
  X(create, cublasLtCreate) X(destroy, cublasLtDestroy) X(version, cublasLtGetVersion) \
  X(status_text, cublasLtGetStatusString) X(description_create, cublasLtMatmulDescCreate) \
  X(description_destroy, cublasLtMatmulDescDestroy) X(description_set, cublasLtMatmulDescSetAttribute) \
  X(layout_create, cublasLtMatrixLayoutCreate) X(layout_destroy, cublasLtMatrixLayoutDestroy) \
  X(layout_set, cublasLtMatrixLayoutSetAttribute) X(preference_create, cublasLtMatmulPreferenceCreate) \
  X(preference_destroy, cublasLtMatmulPreferenceDestroy) X(preference_set, cublasLtMatmulPreferenceSetAttribute) \
  X(heuristic, cublasLtMatmulAlgoGetHeuristic) X(matmul, cublasLtMatmul)
// clang-format on

LLMPROF_API(Api, LLMPROF_LT_CALLS)

// The version this was built with first; what is called is the same in 12 and 13.
bool load_library(std::string& reason) {
  for (const int major : {CUBLAS_VER_MAJOR, 13, 12}) {
    for (const std::string& path : base::cuda_library_candidates(fmt::format("libcublasLt.so.{}", major))) {
      if (::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL) != nullptr) return true;
      if (const char* const text = ::dlerror(); text != nullptr && reason.empty()) reason = text;
    }
  }
  return false;
}

Result<Api> load() {
  std::string reason;
  if (!load_library(reason)) {
    return Error{ErrorCode::kUnsupported, "cuBLASLt was not found: " + reason,
                 "install CUDA's cuBLAS, or add its folder to LD_LIBRARY_PATH"};
  }
  Api api;
  for (const auto& binding : Api::symbols()) {
    void* const address = ::dlsym(RTLD_DEFAULT, binding.symbol);
    if (address == nullptr) return unsupported_error("cuBLASLt has no {}", binding.symbol);
    binding.store(api, address);
  }
  return api;
}

cudaDataType_t data_type(ElementType type) { return type == ElementType::kFloat32 ? CUDA_R_32F : CUDA_R_16BF; }

// Addresses are aligned to so many bytes, 256 at most.
std::uint32_t alignment(Pointer pointer) {
  return static_cast<std::uint32_t>(std::min<Pointer>(256, pointer & (~pointer + 1)));
}

auto key_of(const Matrix& m) { return std::tuple(m.stride, m.type, m.transposed, m.batch_stride, alignment(m.data)); }
auto key_of(const Product& p) {
  return std::tuple(p.m, p.n, p.k, p.batch, key_of(p.a), key_of(p.b), key_of(p.out), p.bias != 0, p.accumulate);
}
using Key = decltype(key_of(Product{}));

// A product as the library wants it described: column-major, so that outᵀ (n x m) = bᵀ · aᵀ.
struct Plan {
  const Api& api;
  cublasLtMatmulDesc_t description = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, out = nullptr;
  cublasLtMatmulAlgo_t algorithm{};

  explicit Plan(const Api& of) : api(of) {}
  Plan(const Plan&) = delete;
  ~Plan() {
    if (description != nullptr) api.description_destroy(description);
    for (cublasLtMatrixLayout_t layout : {a, b, out}) {
      if (layout != nullptr) api.layout_destroy(layout);
    }
  }
};

class Lt final : public Blas {
 public:
  Lt(const Api& api, Device& device, CUstream stream)
      : api_(api), stream_(reinterpret_cast<cudaStream_t>(stream)), workspace_(device, kWorkspaceBytes) {}
  ~Lt() override {
    plans_.clear();
    if (handle_ != nullptr) api_.destroy(handle_);
  }
  Result<void> start() {
    const std::size_t version = api_.version();
    version_ = fmt::format("cuBLASLt {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
    return checked(api_.create(&handle_), "cublasLtCreate");
  }
  const std::string& version() const override { return version_; }
  Result<void> multiply(const Product& p) override {
    LLMPROF_LET(const Plan* const plan, plan_of(p));
    if (p.bias != 0) {
      LLMPROF_TRY(set(plan->description, CUBLASLT_MATMUL_DESC_BIAS_POINTER, reinterpret_cast<const void*>(p.bias)));
    }
    const float one = 1, beta = p.accumulate ? 1 : 0;
    auto* const out = reinterpret_cast<void*>(p.out.data);
    return checked(api_.matmul(handle_, plan->description, &one, reinterpret_cast<const void*>(p.b.data), plan->b,
                               reinterpret_cast<const void*>(p.a.data), plan->a, &beta, out, plan->out, out, plan->out,
                               &plan->algorithm, reinterpret_cast<void*>(workspace_.pointer()),
                               static_cast<std::size_t>(kWorkspaceBytes), stream_),
                   "cublasLtMatmul");
  }

 private:
  Result<void> checked(cublasStatus_t status, const char* what) const {
    if (status == CUBLAS_STATUS_SUCCESS) return {};
    return Error{ErrorCode::kInternal, fmt::format("{}: {} ({})", what, api_.status_text(status), version_), ""};
  }
  Result<Plan*> plan_of(const Product& product) {
    std::unique_ptr<Plan>& known = plans_[key_of(product)];
    if (known == nullptr) {
      auto plan = std::make_unique<Plan>(api_);
      LLMPROF_TRY(describe(product, *plan));
      LLMPROF_TRY(choose(product, *plan));
      known = std::move(plan);
    }
    return known.get();
  }

  Result<void> describe(const Product& p, Plan& plan) const {
    // No TF32: float32 shall agree with the CPU.
    LLMPROF_TRY(checked(api_.description_create(&plan.description, CUBLAS_COMPUTE_32F, CUDA_R_32F),
                        "cublasLtMatmulDescCreate"));
    LLMPROF_TRY(set(plan.description, CUBLASLT_MATMUL_DESC_TRANSA, p.b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N));
    LLMPROF_TRY(set(plan.description, CUBLASLT_MATMUL_DESC_TRANSB, p.a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N));
    if (p.bias != 0) {
      LLMPROF_TRY(set(plan.description, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS));
      LLMPROF_TRY(set(plan.description, CUBLASLT_MATMUL_DESC_BIAS_POINTER, reinterpret_cast<const void*>(p.bias)));
    }
    LLMPROF_TRY(layout(p.a, p.m, p.k, p.batch, &plan.a));
    LLMPROF_TRY(layout(p.b, p.k, p.n, p.batch, &plan.b));
    return layout(p.out, p.m, p.n, p.batch, &plan.out);
  }

  // Row-major (rows, columns) is column-major (columns, rows).
  Result<void> layout(const Matrix& matrix, std::int64_t rows, std::int64_t columns, std::int64_t batch,
                      cublasLtMatrixLayout_t* to) const {
    if (matrix.transposed) std::swap(rows, columns);
    LLMPROF_TRY(checked(api_.layout_create(to, data_type(matrix.type), static_cast<std::uint64_t>(columns),
                                           static_cast<std::uint64_t>(rows), matrix.stride),
                        "cublasLtMatrixLayoutCreate"));
    if (batch == 1) return {};
    const auto count = static_cast<std::int32_t>(batch);
    LLMPROF_TRY(checked(api_.layout_set(*to, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count), "batch count"));
    return checked(api_.layout_set(*to, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &matrix.batch_stride,
                                   sizeof matrix.batch_stride),
                   "batch stride");
  }

  // The heuristic's first choice.
  Result<void> choose(const Product& p, Plan& plan) const {
    cublasLtMatmulPreference_t preference = nullptr;
    LLMPROF_TRY(checked(api_.preference_create(&preference), "cublasLtMatmulPreferenceCreate"));
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
      return api_.preference_set(preference, attribute, &value, sizeof value) == CUBLAS_STATUS_SUCCESS;
    };
    const bool preferred =
        prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<std::uint64_t>(kWorkspaceBytes)) &&
        prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment(p.b.data)) &&
        prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment(p.a.data)) &&
        prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment(p.out.data)) &&
        prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment(p.out.data));
    cublasLtMatmulHeuristicResult_t found{};
    int count = 0;
    const cublasStatus_t status =
        api_.heuristic(handle_, plan.description, plan.b, plan.a, plan.out, plan.out, preference, 1, &found, &count);
    api_.preference_destroy(preference);
    if (!preferred || status != CUBLAS_STATUS_SUCCESS || count == 0) {
      return unsupported_error("{} has no algorithm for a product of {} x {} x {}, batch {}, in {}: {}", version_, p.m,
                               p.n, p.k, p.batch, name_of(p.a.type), api_.status_text(status));
    }
    plan.algorithm = found.algo;
    return {};
  }

  template <class T>
  Result<void> set(cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t attribute, T value) const {
    return checked(api_.description_set(description, attribute, &value, sizeof value), "describing a product");
  }

  const Api api_;
  cudaStream_t stream_;
  Buffer workspace_;  // of all calls: they are on one stream
  cublasLtHandle_t handle_ = nullptr;
  std::string version_;
  std::map<Key, std::unique_ptr<Plan>> plans_;
};

}  // namespace

Result<std::unique_ptr<Blas>> Blas::open(Device& device, CUstream stream) {
  LLMPROF_LET(const Api api, load());
  auto blas = std::make_unique<Lt>(api, device, stream);
  LLMPROF_TRY(blas->start());
  return std::unique_ptr<Blas>(std::move(blas));
}

}  // namespace llmprof::workload::cuda
