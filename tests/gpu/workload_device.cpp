// libs/workload/cuda/device_test.cpp with the GPU of this machine.

#include <cstdio>
#include <cstdlib>

#include "workload/cuda/testing/test_device.h"

namespace llmprof::workload::cuda {

std::shared_ptr<Device> test_device() {
  const Result<std::shared_ptr<Device>> gpu = open_gpu();
  if (gpu) return *gpu;
  std::fprintf(stderr, "%s\n", gpu.error().message.c_str());
  std::exit(1);
}

}  // namespace llmprof::workload::cuda
