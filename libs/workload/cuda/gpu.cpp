// The real device: CUDA's driver library and cuBLASLt, loaded by dlopen.

#include <fmt/format.h>

#include <cublasLt.h>
#include <cuda.h>
#include <dlfcn.h>
#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <vector>

#include "base/asset.h"
#include "base/cuda_libraries.h"
#include "base/dynlib.h"
#include "base/errors.h"
#include "base/result.h"
#include "workload/cuda/device.h"

namespace llmprof::workload_kernels {
std::span<const base::Asset> assets();
}

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

LLMPROF_API(LtApi, LLMPROF_LT_CALLS)

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

Result<LtApi> load_cublas() {
  std::string reason;
  if (!load_library(reason)) {
    return Error{ErrorCode::kUnsupported, "cuBLASLt was not found: " + reason,
                 "install CUDA's cuBLAS, or add its folder to LD_LIBRARY_PATH"};
  }
  LtApi api;
  for (const auto& binding : LtApi::symbols()) {
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
  const LtApi& api;
  cublasLtMatmulDesc_t description = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, out = nullptr;
  cublasLtMatmulAlgo_t algorithm{};

  explicit Plan(const LtApi& of) : api(of) {}
  Plan(const Plan&) = delete;
  ~Plan() {
    if (description != nullptr) api.description_destroy(description);
    for (cublasLtMatrixLayout_t layout : {a, b, out}) {
      if (layout != nullptr) api.layout_destroy(layout);
    }
  }
};

// Matrix products by cuBLASLt, with their exact shapes. Its functions are looked up in the scope of the whole program,
// where a library loaded before it, such as a profiler's, may stand in front of cuBLASLt's own.
class Blas {
 public:
  Blas(const LtApi& api, Device& device, CUstream stream)
      : api_(api), stream_(reinterpret_cast<cudaStream_t>(stream)), workspace_(device, kWorkspaceBytes) {}
  ~Blas() {
    plans_.clear();
    if (handle_ != nullptr) api_.destroy(handle_);
  }
  // The device's context is current. kUnsupported if the library is not found.
  static Result<std::unique_ptr<Blas>> open(Device& device, CUstream stream) {
    LLMPROF_LET(const LtApi api, load_cublas());
    auto blas = std::make_unique<Blas>(api, device, stream);
    const std::size_t version = api.version();
    blas->version_ = fmt::format("cuBLASLt {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
    LLMPROF_TRY(blas->checked(api.create(&blas->handle_), "cublasLtCreate"));
    return blas;
  }
  const std::string& version() const { return version_; }
  Result<void> multiply(const Product& p) {
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

  const LtApi api_;
  cudaStream_t stream_;
  Buffer workspace_;  // of all calls: they are on one stream
  cublasLtHandle_t handle_ = nullptr;
  std::string version_;
  std::map<Key, std::unique_ptr<Plan>> plans_;
};

// The functions of the driver that are called, by the names that both CUDA 12 and 13 drivers export.
// clang-format off
#define LLMPROF_DRIVER_CALLS(X) \
  X(init, cuInit) X(error_name, cuGetErrorName) X(error_text, cuGetErrorString) X(device_count, cuDeviceGetCount) \
  X(device, cuDeviceGet) X(device_name, cuDeviceGetName) X(device_attribute, cuDeviceGetAttribute) \
  X(context_retain, cuDevicePrimaryCtxRetain) X(context_release, cuDevicePrimaryCtxRelease_v2) \
  X(context_set_current, cuCtxSetCurrent) X(allocate, cuMemAlloc_v2) X(free, cuMemFree_v2) \
  X(copy_in, cuMemcpyHtoDAsync_v2) X(copy_out, cuMemcpyDtoHAsync_v2) X(copy, cuMemcpyDtoDAsync_v2) \
  X(set_bytes, cuMemsetD8Async) X(stream_create, cuStreamCreate) X(stream_destroy, cuStreamDestroy_v2) \
  X(stream_synchronize, cuStreamSynchronize) X(module_load, cuModuleLoadData) X(module_unload, cuModuleUnload) \
  X(module_function, cuModuleGetFunction) X(function_attribute, cuFuncSetAttribute) X(launch, cuLaunchKernel) \
  X(capture_begin, cuStreamBeginCapture_v2) X(capture_end, cuStreamEndCapture) \
  X(graph_instantiate, cuGraphInstantiateWithFlags) X(graph_launch, cuGraphLaunch) \
  X(graph_exec_destroy, cuGraphExecDestroy) X(graph_destroy, cuGraphDestroy)
// clang-format on

LLMPROF_API(Driver, LLMPROF_DRIVER_CALLS)

// Loaded and initialised.
Result<Driver> load_driver() {
  const std::string names[] = {"libcuda.so.1"};
  Result<Driver> driver = base::load_api<Driver>(names, Driver::symbols());
  if (!driver) {
    return Error{ErrorCode::kUnsupported, "no CUDA driver: " + driver.error().message,
                 "on a machine with an NVIDIA GPU install its driver; without one, use --device cpu"};
  }
  if (const CUresult result = driver->init(0); result != CUDA_SUCCESS) {
    const char* name = "unknown error";
    driver->error_name(result, &name);
    return Error{ErrorCode::kUnsupported, fmt::format("the CUDA driver does not start: {}", name),
                 "`nvidia-smi` tells whether the GPU is visible here; without one, use --device cpu"};
  }
  return driver;
}

// "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY, out of memory"
Error driver_error(const Driver& driver, CUresult result, std::string_view call) {
  const char *name = "unknown error", *text = "";
  driver.error_name(result, &name);
  driver.error_text(result, &text);
  const bool unsupported = result == CUDA_ERROR_OUT_OF_MEMORY || result == CUDA_ERROR_NOT_SUPPORTED ||
                           result == CUDA_ERROR_NO_BINARY_FOR_GPU;
  return {unsupported ? ErrorCode::kUnsupported : ErrorCode::kInternal, fmt::format("{}: {}, {}", call, name, text),
          result == CUDA_ERROR_OUT_OF_MEMORY ? "a smaller model, batch or prompt needs less memory"
          : result == CUDA_ERROR_NO_BINARY_FOR_GPU
              ? "this build has no kernels for this GPU: configure it here, or with -DLLMPROF_CUDA_TARGETS='75;80;90'"
              : ""};
}

class Gpu final : public Device {
 public:
  static Result<std::shared_ptr<Device>> open() {
    LLMPROF_LET(const Driver driver, load_driver());
    std::shared_ptr<Gpu> gpu(new Gpu(driver));
    LLMPROF_TRY(gpu->start());
    return std::shared_ptr<Device>(std::move(gpu));
  }

  ~Gpu() override {
    if (stream_ != nullptr) driver_.stream_synchronize(stream_);
    blas_.reset();
    for (CUmodule module : modules_) driver_.module_unload(module);
    if (stream_ != nullptr) driver_.stream_destroy(stream_);
    if (retained_) driver_.context_release(device_);
  }

  std::string name() const override { return name_; }
  bool has_bfloat16() const override { return major_ >= 8; }
  Pointer allocate(std::int64_t bytes) override {
    if (failure_ || bytes <= 0) return 0;
    CUdeviceptr pointer = 0;
    check(driver_.allocate(&pointer, static_cast<std::size_t>(bytes)), fmt::format("cuMemAlloc of {} bytes", bytes));
    return pointer;
  }

  void release(Pointer pointer) override { driver_.free(pointer); }
  // From pageable memory the driver has taken the bytes when it returns.
  void copy_in(Pointer to, const void* from, std::int64_t bytes) override {
    if (failure_ || bytes <= 0) return;
    check(driver_.copy_in(to, from, static_cast<std::size_t>(bytes), stream_), "cuMemcpyHtoD");
  }

  void copy_out(void* to, Pointer from, std::int64_t bytes) override {
    if (failure_ || bytes <= 0) return;
    check(driver_.copy_out(to, from, static_cast<std::size_t>(bytes), stream_), "cuMemcpyDtoH");
    check(driver_.stream_synchronize(stream_), "cuStreamSynchronize");
  }

  void copy(Pointer to, Pointer from, std::int64_t bytes) override {
    if (failure_ || bytes <= 0) return;
    check(driver_.copy(to, from, static_cast<std::size_t>(bytes), stream_), "cuMemcpyDtoD");
  }

  void clear(Pointer to, std::int64_t bytes) override {
    if (failure_ || bytes <= 0) return;
    check(driver_.set_bytes(to, 0, static_cast<std::size_t>(bytes), stream_), "cuMemsetD8");
  }

  void launch(const std::string& kernel, const Launch& l, std::initializer_list<Argument> arguments) override {
    if (failure_) return;
    constexpr std::int64_t kPlainSharedBytes = 48 * 1024;
    CUfunction const entry = function(kernel);
    std::array<void*, 16> pointers{};
    if (entry == nullptr || arguments.size() > pointers.size()) {
      failure_ = Error{ErrorCode::kInternal,
                       fmt::format("this build has no kernel {} of {} arguments", kernel, arguments.size())};
      return;
    }
    if (l.shared_bytes > kPlainSharedBytes) {
      check(driver_.function_attribute(entry, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                       static_cast<int>(l.shared_bytes)),
            kernel);
    }
    std::size_t count = 0;
    for (const Argument& argument : arguments) pointers[count++] = const_cast<void*>(argument.data);
    const auto size = [](std::int64_t value) { return static_cast<unsigned>(value); };
    check(driver_.launch(entry, size(l.grid_x), size(l.grid_y), size(l.grid_z), size(l.block_x), size(l.block_y), 1,
                         size(l.shared_bytes), stream_, pointers.data(), nullptr),
          kernel);
  }

  void multiply(const Product& product) override {
    if (failure_) return;
    if (Result<void> done = blas_->multiply(product); !done) failure_ = std::move(done.error());
  }

  std::unique_ptr<Graph> capture(const std::function<void()>& enqueue) override;
  Result<void> status() const override {
    if (failure_) return *failure_;
    return {};
  }
  Result<void> finish() override {
    if (!failure_) check(driver_.stream_synchronize(stream_), "cuStreamSynchronize");
    return status();
  }

 private:
  class Captured;

  explicit Gpu(const Driver& driver) : driver_(driver) {}
  Result<void> start() {
    int count = 0;
    LLMPROF_TRY(checked(driver_.device_count(&count), "cuDeviceGetCount"));
    if (count == 0) return Error{ErrorCode::kUnsupported, "the CUDA driver reports no GPU", "use --device cpu"};
    LLMPROF_TRY(checked(driver_.device(&device_, 0), "cuDeviceGet"));
    std::array<char, 128> name{};
    LLMPROF_TRY(checked(driver_.device_name(name.data(), static_cast<int>(name.size()), device_), "cuDeviceGetName"));
    LLMPROF_TRY(checked(driver_.device_attribute(&major_, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device_),
                        "cuDeviceGetAttribute"));
    CUcontext context = nullptr;  // the primary one: cuBLASLt works in the same
    LLMPROF_TRY(checked(driver_.context_retain(&context, device_), "cuDevicePrimaryCtxRetain"));
    retained_ = true;
    LLMPROF_TRY(checked(driver_.context_set_current(context), "cuCtxSetCurrent"));
    LLMPROF_TRY(checked(driver_.stream_create(&stream_, CU_STREAM_NON_BLOCKING), "cuStreamCreate"));
    LLMPROF_LET(blas_, Blas::open(*this, stream_));
    name_ = fmt::format("{}, {}", name.data(), blas_->version());
    return load_modules();
  }

  Result<void> load_modules() {
    for (const base::Asset& asset : workload_kernels::assets()) {
      CUmodule module = nullptr;
      LLMPROF_TRY(checked(driver_.module_load(&module, asset.bytes.data()), fmt::format("loading {}", asset.path)));
      modules_.push_back(module);
    }
    return {};
  }

  CUfunction function(const std::string& kernel) {
    if (const auto found = functions_.find(kernel); found != functions_.end()) return found->second;
    CUfunction function = nullptr;
    for (CUmodule module : modules_) {
      if (driver_.module_function(&function, module, kernel.c_str()) == CUDA_SUCCESS) break;
    }
    return functions_[kernel] = function;
  }

  Result<void> checked(CUresult result, std::string_view call) const {
    if (result == CUDA_SUCCESS) return {};
    return driver_error(driver_, result, call);
  }
  // Keeps the first failure.
  void check(CUresult result, std::string_view call) {
    if (result != CUDA_SUCCESS && !failure_) failure_ = driver_error(driver_, result, call);
  }

  Driver driver_;
  CUdevice device_ = 0;
  bool retained_ = false;
  CUstream stream_ = nullptr;
  std::string name_;
  int major_ = 0;
  std::vector<CUmodule> modules_;
  std::map<std::string, CUfunction> functions_;
  std::unique_ptr<Blas> blas_;
  std::optional<Error> failure_;
};

class Gpu::Captured final : public Graph {
 public:
  Captured(Gpu& gpu, CUgraphExec executable) : gpu_(gpu), executable_(executable) {}
  ~Captured() override {
    if (executable_ != nullptr) gpu_.driver_.graph_exec_destroy(executable_);
  }
  void launch() override {
    if (!gpu_.failure_) gpu_.check(gpu_.driver_.graph_launch(executable_, gpu_.stream_), "cuGraphLaunch");
  }

 private:
  Gpu& gpu_;
  CUgraphExec executable_;
};

std::unique_ptr<Graph> Gpu::capture(const std::function<void()>& enqueue) {
  CUgraphExec executable = nullptr;
  if (!failure_) check(driver_.capture_begin(stream_, CU_STREAM_CAPTURE_MODE_RELAXED), "cuStreamBeginCapture");
  if (!failure_) {
    enqueue();
    CUgraph captured = nullptr;
    check(driver_.capture_end(stream_, &captured), "cuStreamEndCapture");  // also after a failure: capture must end
    if (!failure_) check(driver_.graph_instantiate(&executable, captured, 0), "cuGraphInstantiate");
    if (captured != nullptr) driver_.graph_destroy(captured);
  }
  return std::make_unique<Captured>(*this, executable);
}

}  // namespace

Result<std::shared_ptr<Device>> open_gpu() { return Gpu::open(); }

}  // namespace llmprof::workload::cuda
