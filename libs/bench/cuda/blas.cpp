#include "bench/cuda/blas.h"

#include <fmt/format.h>

#include "base/cuda_libraries.h"
#include "base/dynlib.h"
#include "bench/cuda/blas_library.h"

namespace llmprof::bench::cuda {
namespace {

// What PyTorch gives cuBLAS on Hopper: the heuristic's first answer is then the one it takes.
constexpr std::int64_t kWorkspaceBytes = std::int64_t{32} << 20;

constexpr base::Binding<LtApi> kLtSymbols[] = {
    base::bind<&LtApi::create>("cublasLtCreate"),
    base::bind<&LtApi::destroy>("cublasLtDestroy"),
    base::bind<&LtApi::version>("cublasLtGetVersion"),
    base::bind<&LtApi::status_text>("cublasLtGetStatusString"),
    base::bind<&LtApi::desc_create>("cublasLtMatmulDescCreate"),
    base::bind<&LtApi::desc_destroy>("cublasLtMatmulDescDestroy"),
    base::bind<&LtApi::desc_set>("cublasLtMatmulDescSetAttribute"),
    base::bind<&LtApi::layout_create>("cublasLtMatrixLayoutCreate"),
    base::bind<&LtApi::layout_destroy>("cublasLtMatrixLayoutDestroy"),
    base::bind<&LtApi::layout_set>("cublasLtMatrixLayoutSetAttribute"),
    base::bind<&LtApi::preference_create>("cublasLtMatmulPreferenceCreate"),
    base::bind<&LtApi::preference_destroy>("cublasLtMatmulPreferenceDestroy"),
    base::bind<&LtApi::preference_set>("cublasLtMatmulPreferenceSetAttribute"),
    base::bind<&LtApi::heuristic>("cublasLtMatmulAlgoGetHeuristic"),
    base::bind<&LtApi::algorithm_get>("cublasLtMatmulAlgoConfigGetAttribute"),
    base::bind<&LtApi::matmul>("cublasLtMatmul"),
};
constexpr base::Binding<CublasApi> kCublasSymbols[] = {
    base::bind<&CublasApi::create>("cublasCreate_v2"),
    base::bind<&CublasApi::destroy>("cublasDestroy_v2"),
    base::bind<&CublasApi::set_stream>("cublasSetStream_v2"),
    base::bind<&CublasApi::set_workspace>("cublasSetWorkspace_v2"),
    base::bind<&CublasApi::gemm>("cublasGemmEx_64"),
    base::bind<&CublasApi::gemm_batched>("cublasGemmStridedBatchedEx_64"),
    base::bind<&CublasApi::gemm_grouped>("cublasGemmGroupedBatchedEx", base::Need::kOptional),
};

// The version this was built with first. The functions above are the same in 12 and 13.
std::vector<std::string> library_names(const char* stem) {
  std::vector<std::string> names;
  for (const int major : {CUBLAS_VER_MAJOR, 13, 12}) {
    const std::string name = fmt::format("{}.so.{}", stem, major);
    names.push_back(name);
    for (std::string& path : base::cuda_library_candidates(name)) names.push_back(std::move(path));
  }
  return names;
}

// 130100 is 13.1.0.
std::string version_text(std::size_t version) {
  return fmt::format("cuBLASLt {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

// Without cuBLAS itself there is still cuBLASLt.
void open_cublas(BlasState& state) {
  const auto api = base::load_api<CublasApi>(library_names("libcublas"), kCublasSymbols);
  if (!api || api->create(&state.handle) != CUBLAS_STATUS_SUCCESS) return;
  state.cublas = *api;
  auto* const stream = reinterpret_cast<cudaStream_t>(state.context.stream());
  const auto bytes = static_cast<std::size_t>(state.workspace.bytes());
  // The order matters: a new stream takes the workspace away.
  if (api->set_stream(state.handle, stream) != CUBLAS_STATUS_SUCCESS ||
      api->set_workspace(state.handle, reinterpret_cast<void*>(state.workspace.pointer()), bytes) !=
          CUBLAS_STATUS_SUCCESS) {
    api->destroy(state.handle);
    state.handle = nullptr;
  }
}

Error unsupported(const Matmul& m, const std::string& why) {
  return {ErrorCode::kUnsupported,
          fmt::format("{} product of m={} n={} k={}: {}", type_name(m.type), m.m, m.n, m.k, why), ""};
}

// What is known before the library is asked, in words better than its own.
Result<void> check_supported(const Matmul& m, const Properties& device) {
  const bool one_byte = type_bytes(m.type) == 1;
  if (one_byte && (m.n % 16 != 0 || m.k % 16 != 0)) return unsupported(m, "n and k must be multiples of 16");
  const int least = m.type == Type::kFloat8E4m3 ? 89 : m.type == Type::kBfloat16 || m.type == Type::kTf32 ? 80 : 0;
  if (device.capability() < least) {
    return unsupported(m, fmt::format("needs compute capability {}.{}, {} has {}.{}", least / 10, least % 10,
                                      device.name, device.major, device.minor));
  }
  return {};
}

}  // namespace

BlasState::~BlasState() {
  prepared.clear();
  if (handle != nullptr) cublas.destroy(handle);
  if (lt_handle != nullptr) lt.destroy(lt_handle);
}

Result<void> BlasState::check(cublasStatus_t status, const char* what) const {
  if (status == CUBLAS_STATUS_SUCCESS) return {};
  const bool here = status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_ARCH_MISMATCH ||
                    status == CUBLAS_STATUS_INVALID_VALUE || status == CUBLAS_STATUS_ALLOC_FAILED;
  return Error{here ? ErrorCode::kUnsupported : ErrorCode::kInternal,
               fmt::format("{}: {} ({})", what, lt.status_text(status), version), ""};
}

Result<std::shared_ptr<Blas>> open_blas(Context& context) {
  auto state = std::make_unique<BlasState>(context);
  auto api = base::load_api<LtApi>(library_names("libcublasLt"), kLtSymbols);
  if (!api) {
    return Error{ErrorCode::kUnsupported, "cuBLASLt was not found: " + api.error().message,
                 "install CUDA's cuBLAS, or add its folder to LD_LIBRARY_PATH"};
  }
  state->lt = *api;
  state->version = version_text(api->version());
  LLMPROF_TRY(state->check(api->create(&state->lt_handle), "cublasLtCreate"));
  LLMPROF_LET(state->workspace, context.allocate(kWorkspaceBytes));
  open_cublas(*state);
  return std::make_shared<Blas>(std::move(state));
}

Blas::Blas(std::unique_ptr<BlasState> state) : state_(std::move(state)) {}
Blas::~Blas() = default;
const std::string& Blas::version() const { return state_->version; }

Result<PreparedMatmul> Blas::prepare(const Matmul& matmul, const Search& search) {
  if (const auto found = state_->prepared.find(matmul); found != state_->prepared.end()) return found->second;
  LLMPROF_TRY(check_supported(matmul, state_->context.properties()));
  LLMPROF_LET(const std::shared_ptr<MatmulPlan> plan, MatmulPlan::make(*state_, matmul));
  LLMPROF_LET(const Found found, fastest(*state_, *plan, search));
  const PreparedMatmul prepared{.enqueue = [plan, algorithm = found.algorithm](
                                               Pointer a, Pointer b, Pointer c,
                                               Stream stream) { return plan->enqueue(algorithm, a, b, c, stream); },
                                .method = plan->describe(found.algorithm) + ", " + found.how,
                                .workspace_bytes = static_cast<std::int64_t>(found.algorithm.workspace_bytes)};
  state_->prepared.emplace(matmul, prepared);
  return prepared;
}

}  // namespace llmprof::bench::cuda
