#pragma once
// A transformer on a device: weights, cache and scratch memory, all allocated at the start, and the names it announces
// its parts under, which are those of the CPU's.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "workload/config.h"
#include "workload/cuda/operators.h"
#include "workload/generate.h"
#include "workload/module_names.h"

namespace llmprof::workload::cuda {

class DeviceModel {
 public:
  virtual ~DeviceModel() = default;
  const ModelConfig& config() const { return config_; }

  // The tokens (B, T) of the next pass, whose first ones stand at `position`.
  void set_inputs(std::int64_t position, std::span<const Token> tokens);
  // Enqueues a pass over T tokens of each sequence; logits (B, V) of the last position of each are at logits().
  void forward(std::int64_t tokens);
  // Enqueues the greedy choice: it becomes the input of the next pass, of one token each, and the position moves on by
  // T.
  void choose(std::int64_t tokens) { run_.argmax(pass_of(tokens), logits_.pointer(), config_.vocab); }
  // Both wait for the device.
  void read_chosen(std::span<Token> next) const;
  void read_logits(std::span<float> logits) const;

 protected:
  struct Sizes {
    std::int64_t batch, most_tokens, capacity;  // sequences, new tokens of each in a pass, all tokens of each
    std::int64_t rows() const { return batch * most_tokens; }
  };
  friend std::unique_ptr<DeviceModel> make_device_model(const ModelConfig&, DeviceWeights, Device&,
                                                        const GenerateOptions&);
  DeviceModel(const ModelConfig& config, DeviceWeights weights, Device& device, const Sizes& sizes);

  // The parts in which families differ.
  virtual void embed(const DevicePass& pass) = 0;                                  // writes x_
  virtual void run_layer(const DevicePass& pass, std::int64_t layer) = 0;          // x_ = layer(x_)
  virtual void final_norm(Pointer x, std::int64_t stride, std::int64_t rows) = 0;  // writes normed_

  DevicePass pass_of(std::int64_t tokens) const { return {sizes_.batch, tokens, inputs_.pointer()}; }
  LayerCache cache_of(std::int64_t layer) const;
  Buffer scratch(std::int64_t values) const { return {run_.device(), run_.bytes(values)}; }
  void normalise(const DeviceNorm& norm, std::int64_t rows) {  // x_ to normed_
    run_.normalise(norm, config_, x_.pointer(), config_.hidden, rows, normed_.pointer());
  }

  ModelConfig config_;
  DeviceWeights weights_;
  Operators run_;
  Sizes sizes_;
  ModuleNames names_;
  Buffer x_;        // (B, T, C): the residual stream
  Buffer normed_;   // (B, T, C)
  Buffer mixed_;    // (B, T, H·D): output of attention
  Buffer partial_;  // of attention in decode

 private:
  DeviceLinear head_;
  llmprof_name head_name_;
  Buffer inputs_;  // int32: position, tokens (B, T)
  Buffer cache_;   // keys of all layers, then their values
  Buffer logits_;  // (B, V), float32
};

std::unique_ptr<DeviceModel> make_device_model(const ModelConfig& config, DeviceWeights weights, Device& device,
                                               const GenerateOptions& options);

}  // namespace llmprof::workload::cuda
