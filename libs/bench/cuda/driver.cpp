#include "bench/cuda/driver.h"

#include <fmt/format.h>

#include "base/dynlib.h"

namespace llmprof::bench::cuda {
namespace {

using base::bind;

constexpr base::Binding<DriverApi> kSymbols[] = {
    bind<&DriverApi::init>("cuInit"),
    bind<&DriverApi::driver_version>("cuDriverGetVersion"),
    bind<&DriverApi::error_name>("cuGetErrorName"),
    bind<&DriverApi::error_text>("cuGetErrorString"),
    bind<&DriverApi::device_count>("cuDeviceGetCount"),
    bind<&DriverApi::device>("cuDeviceGet"),
    bind<&DriverApi::device_name>("cuDeviceGetName"),
    bind<&DriverApi::device_memory>("cuDeviceTotalMem_v2"),
    bind<&DriverApi::device_attribute>("cuDeviceGetAttribute"),
    bind<&DriverApi::device_bus_id>("cuDeviceGetPCIBusId"),
    bind<&DriverApi::context_retain>("cuDevicePrimaryCtxRetain"),
    bind<&DriverApi::context_release>("cuDevicePrimaryCtxRelease_v2"),
    bind<&DriverApi::context_reset>("cuDevicePrimaryCtxReset_v2"),
    bind<&DriverApi::context_set_current>("cuCtxSetCurrent"),
    bind<&DriverApi::memory_info>("cuMemGetInfo_v2"),
    bind<&DriverApi::allocate>("cuMemAlloc_v2"),
    bind<&DriverApi::free>("cuMemFree_v2"),
    bind<&DriverApi::host_allocate>("cuMemHostAlloc"),
    bind<&DriverApi::host_free>("cuMemFreeHost"),
    bind<&DriverApi::host_pointer>("cuMemHostGetDevicePointer_v2"),
    bind<&DriverApi::copy_in>("cuMemcpyHtoDAsync_v2"),
    bind<&DriverApi::copy_out>("cuMemcpyDtoHAsync_v2"),
    bind<&DriverApi::copy>("cuMemcpyDtoDAsync_v2"),
    bind<&DriverApi::set_bytes>("cuMemsetD8Async"),
    bind<&DriverApi::stream_create>("cuStreamCreate"),
    bind<&DriverApi::stream_destroy>("cuStreamDestroy_v2"),
    bind<&DriverApi::stream_synchronize>("cuStreamSynchronize"),
    bind<&DriverApi::event_create>("cuEventCreate"),
    bind<&DriverApi::event_destroy>("cuEventDestroy_v2"),
    bind<&DriverApi::event_record>("cuEventRecord"),
    bind<&DriverApi::event_synchronize>("cuEventSynchronize"),
    bind<&DriverApi::event_elapsed_ms>("cuEventElapsedTime"),
    bind<&DriverApi::module_load>("cuModuleLoadData"),
    bind<&DriverApi::module_unload>("cuModuleUnload"),
    bind<&DriverApi::module_function>("cuModuleGetFunction"),
    bind<&DriverApi::function_attribute>("cuFuncSetAttribute"),
    bind<&DriverApi::launch>("cuLaunchKernel"),
    bind<&DriverApi::occupancy>("cuOccupancyMaxActiveBlocksPerMultiprocessor"),
    bind<&DriverApi::capture_begin>("cuStreamBeginCapture_v2"),
    bind<&DriverApi::capture_end>("cuStreamEndCapture"),
    bind<&DriverApi::graph_instantiate>("cuGraphInstantiateWithFlags"),
    bind<&DriverApi::graph_launch>("cuGraphLaunch"),
    bind<&DriverApi::graph_exec_destroy>("cuGraphExecDestroy"),
    bind<&DriverApi::graph_destroy>("cuGraphDestroy"),
};

Result<DriverApi> load() {
  const std::string names[] = {"libcuda.so.1"};
  Result<DriverApi> api = base::load_api<DriverApi>(names, kSymbols);
  if (!api) {
    return Error{ErrorCode::kUnsupported, "no CUDA driver: " + api.error().message,
                 "on a machine with an NVIDIA GPU install its driver; without one, use --device cpu"};
  }
  if (const CUresult result = api->init(0); result != CUDA_SUCCESS) {
    const char* name = "unknown";
    api->error_name(result, &name);
    return Error{ErrorCode::kUnsupported, fmt::format("the CUDA driver does not start: {}", name),
                 "`nvidia-smi` tells whether the GPU is visible here; without one, use --device cpu"};
  }
  return api;
}

}  // namespace

const Result<DriverApi>& driver() {
  static const Result<DriverApi> api = load();
  return api;
}

Error cuda_error(CUresult result, std::string_view call) {
  const char *name = "unknown error", *text = "";
  if (driver()) {
    driver()->error_name(result, &name);
    driver()->error_text(result, &text);
  }
  const bool unsupported = result == CUDA_ERROR_OUT_OF_MEMORY || result == CUDA_ERROR_NOT_SUPPORTED ||
                           result == CUDA_ERROR_NO_BINARY_FOR_GPU;
  return {unsupported ? ErrorCode::kUnsupported : ErrorCode::kInternal, fmt::format("{}: {}, {}", call, name, text),
          result == CUDA_ERROR_NO_BINARY_FOR_GPU
              ? "this build has no kernels for this GPU: configure it here, or with -DLLMPROF_CUDA_TARGETS='75;80;90'"
              : ""};
}

Result<void> checked(CUresult result, std::string_view call) {
  if (result == CUDA_SUCCESS) return {};
  return cuda_error(result, call);
}

}  // namespace llmprof::bench::cuda
