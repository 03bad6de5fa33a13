#pragma once
// Which device a run takes, by the name the user gave: cpu, cuda, or auto for whatever is there.

#include <memory>
#include <string>

#include "base/result.h"
#include "workload/config.h"
#include "workload/cuda/device.h"

namespace llmprof::workload {

struct ChosenDevice {
  std::shared_ptr<cuda::Device> gpu;  // none: the CPU
  std::string reason;                 // auto: which, and why
};

// cuda without a usable GPU is an error; auto then takes the CPU.
Result<ChosenDevice> choose_device(const std::string& name);

// "" chooses: float32 on the CPU, on a GPU bfloat16 if it multiplies that.
Result<ElementType> choose_type(const std::string& name, const ChosenDevice& device);

}  // namespace llmprof::workload
