#pragma once
// The parameters of a model in the memory of a device: one block, tensors by name in the order of Weights, each aligned
// to 256 bytes.

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "workload/cuda/device.h"
#include "workload/weights.h"

namespace llmprof::workload::cuda {

struct DeviceLinear {
  Pointer weight = 0;  // (out, in)
  Pointer bias = 0;    // (out), or none
  std::int64_t in = 0, out = 0;
};

struct DeviceNorm {
  Pointer weight = 0;  // (C)
  Pointer bias = 0;    // (C), or none
};

class DeviceWeights {
 public:
  using LinearType = DeviceLinear;
  using NormType = DeviceNorm;

  // All 0.
  DeviceWeights(Device& device, const ModelConfig& config, ElementType type);

  // The numbers that Weights has for this seed, made on the device.
  void fill(Start start, std::uint64_t seed);
  void upload(const Weights& weights);
  void download(Weights& weights) const;  // float32 only

  ElementType type() const { return type_; }
  const std::vector<TensorSpec>& specs() const { return specs_; }
  Pointer base() const { return memory_.pointer(); }  // of the block
  Pointer tensor(const std::string& name) const;      // must exist
  DeviceLinear linear(const std::string& path) const;
  DeviceNorm norm(const std::string& path) const;
  std::int64_t parameters() const { return parameters_; }
  std::int64_t bytes() const { return parameters_ * bytes_of(type_); }  // without what aligns them

 private:
  struct Place {
    std::int64_t offset;  // in bytes
    const TensorSpec* spec;
  };
  Pointer optional_tensor(const std::string& name) const;

  Device& device_;
  ModelConfig config_;
  ElementType type_;
  std::vector<TensorSpec> specs_;
  std::unordered_map<std::string, Place> places_;
  std::int64_t parameters_ = 0;
  Buffer memory_;
};

}  // namespace llmprof::workload::cuda
