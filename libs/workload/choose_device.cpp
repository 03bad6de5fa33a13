#include "workload/choose_device.h"

#include <fmt/format.h>

namespace llmprof::workload {

Result<ChosenDevice> choose_device(const std::string& name) {
  if (name == "cpu") return ChosenDevice{};
  if (name != "cuda" && name != "auto") {
    return Error{ErrorCode::kUsage, fmt::format("unknown device '{}'", name), "known: cpu, cuda, auto"};
  }
  Result<std::shared_ptr<cuda::Device>> gpu = cuda::open_gpu();
  if (gpu) return ChosenDevice{*gpu, "device cuda: " + (*gpu)->name()};
  if (name == "cuda") return std::move(gpu.error());
  return ChosenDevice{nullptr, "device cpu: " + gpu.error().message};
}

Result<ElementType> choose_type(const std::string& name, const ChosenDevice& device) {
  const bool has_bfloat16 = device.gpu != nullptr && device.gpu->has_bfloat16();
  if (name.empty()) return has_bfloat16 ? ElementType::kBfloat16 : ElementType::kFloat32;
  LLMPROF_LET(const ElementType type, parse_element_type(name));
  if (type == ElementType::kFloat32 || has_bfloat16) return type;
  return Error{ErrorCode::kUnsupported,
               device.gpu == nullptr ? "the CPU computes in float32 only"
                                     : device.gpu->name() + " multiplies no bfloat16 (compute capability 8.0 does)",
               device.gpu == nullptr ? "bf16 needs --device cuda" : "--type float32"};
}

}  // namespace llmprof::workload
