#pragma once
// The functions of CUDA's driver library that are called, by the names that both CUDA 12 and 13 drivers export.

#include <cuda.h>

#include "base/dynlib.h"
#include "base/result.h"

namespace llmprof::bench::cuda {

// clang-format off
#define LLMPROF_DRIVER_CALLS(X) \
  X(init, cuInit) X(driver_version, cuDriverGetVersion) X(error_name, cuGetErrorName) \
  X(error_text, cuGetErrorString) X(device_count, cuDeviceGetCount) X(device, cuDeviceGet) \
  X(device_name, cuDeviceGetName) X(device_memory, cuDeviceTotalMem_v2) X(device_attribute, cuDeviceGetAttribute) \
  X(device_bus_id, cuDeviceGetPCIBusId) X(context_retain, cuDevicePrimaryCtxRetain) \
  X(context_release, cuDevicePrimaryCtxRelease_v2) X(context_reset, cuDevicePrimaryCtxReset_v2) \
  X(context_set_current, cuCtxSetCurrent) X(memory_info, cuMemGetInfo_v2) X(allocate, cuMemAlloc_v2) \
  X(free, cuMemFree_v2) X(host_allocate, cuMemHostAlloc) X(host_free, cuMemFreeHost) \
  X(host_pointer, cuMemHostGetDevicePointer_v2) X(copy_in, cuMemcpyHtoDAsync_v2) X(copy_out, cuMemcpyDtoHAsync_v2) \
  X(copy, cuMemcpyDtoDAsync_v2) X(set_bytes, cuMemsetD8Async) X(stream_create, cuStreamCreate) \
  X(stream_destroy, cuStreamDestroy_v2) X(stream_synchronize, cuStreamSynchronize) X(event_create, cuEventCreate) \
  X(event_destroy, cuEventDestroy_v2) X(event_record, cuEventRecord) X(event_synchronize, cuEventSynchronize) \
  X(event_elapsed_ms, cuEventElapsedTime) X(module_load, cuModuleLoadData) X(module_unload, cuModuleUnload) \
  X(module_function, cuModuleGetFunction) X(function_attribute, cuFuncSetAttribute) X(launch, cuLaunchKernel) \
  X(occupancy, cuOccupancyMaxActiveBlocksPerMultiprocessor) X(capture_begin, cuStreamBeginCapture_v2) \
  X(capture_end, cuStreamEndCapture) X(graph_instantiate, cuGraphInstantiateWithFlags) \
  X(graph_launch, cuGraphLaunch) X(graph_exec_destroy, cuGraphExecDestroy) X(graph_destroy, cuGraphDestroy)
// clang-format on
LLMPROF_API(DriverApi, LLMPROF_DRIVER_CALLS)

// Loaded and initialised once; the same answer every time.
const Result<DriverApi>& driver();
// "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY, out of memory"
Error cuda_error(CUresult result, std::string_view call);
// Result<void> of a driver call.
Result<void> checked(CUresult result, std::string_view call);

}  // namespace llmprof::bench::cuda
