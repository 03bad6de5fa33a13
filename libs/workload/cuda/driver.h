#pragma once
// The functions of CUDA's driver library that are called, by the names that both CUDA 12 and 13 drivers export.

#include <cuda.h>

#include "base/result.h"

namespace llmprof::workload::cuda {

struct Driver {
  CUresult (*init)(unsigned) = nullptr;
  CUresult (*error_name)(CUresult, const char**) = nullptr;
  CUresult (*error_text)(CUresult, const char**) = nullptr;
  CUresult (*device_count)(int*) = nullptr;
  CUresult (*device)(CUdevice*, int) = nullptr;
  CUresult (*device_name)(char*, int, CUdevice) = nullptr;
  CUresult (*device_attribute)(int*, CUdevice_attribute, CUdevice) = nullptr;
  CUresult (*context_retain)(CUcontext*, CUdevice) = nullptr;
  CUresult (*context_release)(CUdevice) = nullptr;
  CUresult (*context_set_current)(CUcontext) = nullptr;
  CUresult (*allocate)(CUdeviceptr*, size_t) = nullptr;
  CUresult (*free)(CUdeviceptr) = nullptr;
  CUresult (*copy_in)(CUdeviceptr, const void*, size_t, CUstream) = nullptr;
  CUresult (*copy_out)(void*, CUdeviceptr, size_t, CUstream) = nullptr;
  CUresult (*copy)(CUdeviceptr, CUdeviceptr, size_t, CUstream) = nullptr;
  CUresult (*set_bytes)(CUdeviceptr, unsigned char, size_t, CUstream) = nullptr;
  CUresult (*stream_create)(CUstream*, unsigned) = nullptr;
  CUresult (*stream_destroy)(CUstream) = nullptr;
  CUresult (*stream_synchronize)(CUstream) = nullptr;
  CUresult (*module_load)(CUmodule*, const void*) = nullptr;
  CUresult (*module_unload)(CUmodule) = nullptr;
  CUresult (*module_function)(CUfunction*, CUmodule, const char*) = nullptr;
  CUresult (*function_attribute)(CUfunction, CUfunction_attribute, int) = nullptr;
  CUresult (*launch)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void**,
                     void**) = nullptr;
  CUresult (*capture_begin)(CUstream, CUstreamCaptureMode) = nullptr;
  CUresult (*capture_end)(CUstream, CUgraph*) = nullptr;
  CUresult (*graph_instantiate)(CUgraphExec*, CUgraph, unsigned long long) = nullptr;
  CUresult (*graph_launch)(CUgraphExec, CUstream) = nullptr;
  CUresult (*graph_exec_destroy)(CUgraphExec) = nullptr;
  CUresult (*graph_destroy)(CUgraph) = nullptr;
};

// Loaded and initialised.
Result<Driver> load_driver();
// "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY, out of memory"
Error driver_error(const Driver& driver, CUresult result, std::string_view call);

}  // namespace llmprof::workload::cuda
