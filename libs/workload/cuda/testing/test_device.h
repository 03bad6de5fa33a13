#pragma once
// The device that device_test.cpp tests: an emulated one in unit tests, the real one in tests/gpu.

#include <memory>

#include "workload/cuda/device.h"

namespace llmprof::workload::cuda {

std::shared_ptr<Device> test_device();

}  // namespace llmprof::workload::cuda
