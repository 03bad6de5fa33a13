// The real device: CUDA's driver library, loaded by dlopen.

#include <fmt/format.h>

#include <cuda.h>
#include <array>
#include <map>
#include <vector>

#include "base/asset.h"
#include "base/dynlib.h"
#include "base/result.h"
#include "workload/cuda/blas.h"
#include "workload/cuda/device.h"

namespace llmprof::workload_kernels {
std::span<const base::Asset> assets();
}

namespace llmprof::workload::cuda {
namespace {

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
