#include "workload/cuda/device_weights.h"

#include <algorithm>

#include "base/assert.h"
#include "workload/cuda/operators.h"

namespace llmprof::workload::cuda {
namespace {

constexpr std::int64_t kAlignment = 256;
constexpr std::int64_t kMostStaged = std::int64_t{1} << 24;  // values on their way to another type

}  // namespace

DeviceWeights::DeviceWeights(Device& device, const ModelConfig& config, ElementType type)
    : device_(device), config_(config), type_(type), specs_(tensor_specs(config)) {
  std::int64_t total = 0;
  for (const TensorSpec& spec : specs_) {
    places_.emplace(spec.name, Place{total, &spec});
    parameters_ += spec.count();
    total += (spec.count() * bytes_of(type) + kAlignment - 1) / kAlignment * kAlignment;
  }
  memory_ = Buffer(device, total);
  device.clear(memory_.pointer(), total);
}

void DeviceWeights::fill(Start start, std::uint64_t seed) {
  const Operators run(device_, type_);
  for (std::size_t i = 0; i < specs_.size(); ++i) {
    run.fill_random(random_tensor(start, config_, specs_[i], i, seed), specs_[i].count(), tensor(specs_[i].name));
  }
}

void DeviceWeights::upload(const Weights& weights) {
  const Operators run(device_, type_);
  std::int64_t largest = 0;
  for (const TensorSpec& spec : specs_) largest = std::max(largest, spec.count());
  const bool same = type_ == ElementType::kFloat32;
  const std::int64_t most = std::min(largest, kMostStaged);
  const Buffer staged(device_, same ? 0 : most * bytes_of(ElementType::kFloat32));
  for (const TensorSpec& spec : specs_) {
    const float* const from = weights.tensor(spec.name);
    const Pointer to = tensor(spec.name);
    for (std::int64_t begin = 0; begin < spec.count(); begin += most) {
      const std::int64_t count = std::min(most, spec.count() - begin);
      const Pointer target = to + static_cast<Pointer>(begin * bytes_of(type_));
      device_.copy_in(same ? target : staged.pointer(), from + begin, count * bytes_of(ElementType::kFloat32));
      if (!same) run.convert(staged.pointer(), count, target);
    }
  }
}

void DeviceWeights::download(Weights& weights) const {
  LLMPROF_ASSERT(type_ == ElementType::kFloat32);
  for (const TensorSpec& spec : specs_) {
    device_.copy_out(weights.tensor(spec.name), tensor(spec.name), spec.count() * bytes_of(type_));
  }
}

Pointer DeviceWeights::tensor(const std::string& name) const {
  const auto found = places_.find(name);
  LLMPROF_ASSERT(found != places_.end());
  return base() + static_cast<Pointer>(found->second.offset);
}

Pointer DeviceWeights::optional_tensor(const std::string& name) const {
  return places_.contains(name) ? tensor(name) : 0;
}

DeviceLinear DeviceWeights::linear(const std::string& path) const {
  const auto found = places_.find(path + ".weight");
  LLMPROF_ASSERT(found != places_.end());
  const TensorSpec& spec = *found->second.spec;
  return {.weight = tensor(spec.name), .bias = optional_tensor(path + ".bias"), .in = spec.columns, .out = spec.rows};
}

DeviceNorm DeviceWeights::norm(const std::string& path) const {
  return {.weight = tensor(path + ".weight"), .bias = optional_tensor(path + ".bias")};
}

}  // namespace llmprof::workload::cuda
