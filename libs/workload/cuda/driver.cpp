#include "workload/cuda/driver.h"

#include <fmt/format.h>

#include "base/dynlib.h"

namespace llmprof::workload::cuda {
namespace {

using base::bind;

constexpr base::Binding<Driver> kSymbols[] = {
    bind<&Driver::init>("cuInit"),
    bind<&Driver::error_name>("cuGetErrorName"),
    bind<&Driver::error_text>("cuGetErrorString"),
    bind<&Driver::device_count>("cuDeviceGetCount"),
    bind<&Driver::device>("cuDeviceGet"),
    bind<&Driver::device_name>("cuDeviceGetName"),
    bind<&Driver::device_attribute>("cuDeviceGetAttribute"),
    bind<&Driver::context_retain>("cuDevicePrimaryCtxRetain"),
    bind<&Driver::context_release>("cuDevicePrimaryCtxRelease_v2"),
    bind<&Driver::context_set_current>("cuCtxSetCurrent"),
    bind<&Driver::allocate>("cuMemAlloc_v2"),
    bind<&Driver::free>("cuMemFree_v2"),
    bind<&Driver::copy_in>("cuMemcpyHtoDAsync_v2"),
    bind<&Driver::copy_out>("cuMemcpyDtoHAsync_v2"),
    bind<&Driver::copy>("cuMemcpyDtoDAsync_v2"),
    bind<&Driver::set_bytes>("cuMemsetD8Async"),
    bind<&Driver::stream_create>("cuStreamCreate"),
    bind<&Driver::stream_destroy>("cuStreamDestroy_v2"),
    bind<&Driver::stream_synchronize>("cuStreamSynchronize"),
    bind<&Driver::module_load>("cuModuleLoadData"),
    bind<&Driver::module_unload>("cuModuleUnload"),
    bind<&Driver::module_function>("cuModuleGetFunction"),
    bind<&Driver::function_attribute>("cuFuncSetAttribute"),
    bind<&Driver::launch>("cuLaunchKernel"),
    bind<&Driver::capture_begin>("cuStreamBeginCapture_v2"),
    bind<&Driver::capture_end>("cuStreamEndCapture"),
    bind<&Driver::graph_instantiate>("cuGraphInstantiateWithFlags"),
    bind<&Driver::graph_launch>("cuGraphLaunch"),
    bind<&Driver::graph_exec_destroy>("cuGraphExecDestroy"),
    bind<&Driver::graph_destroy>("cuGraphDestroy"),
};

}  // namespace

Result<Driver> load_driver() {
  const std::string names[] = {"libcuda.so.1"};
  Result<Driver> driver = base::load_api<Driver>(names, kSymbols);
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

}  // namespace llmprof::workload::cuda
