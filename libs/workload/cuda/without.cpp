// A build without CUDA's headers or compiler: there is no GPU, and it says so.

#include "workload/cuda/device.h"

namespace llmprof::workload::cuda {

Result<std::shared_ptr<Device>> open_gpu() {
  return Error{ErrorCode::kUnsupported, "this llmprof was built without CUDA",
               "build it where nvcc is found (CUDA_HOME), or use --device cpu"};
}

}  // namespace llmprof::workload::cuda
