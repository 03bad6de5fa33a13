#include "bench/cuda/driver.h"

#include <fmt/format.h>

#include "base/dynlib.h"

namespace llmprof::bench::cuda {
namespace {

Result<DriverApi> load() {
  const std::string names[] = {"libcuda.so.1"};
  Result<DriverApi> api = base::load_api<DriverApi>(names, DriverApi::symbols());
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
