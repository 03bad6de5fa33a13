#pragma once
// A transformer on a device: weights, cache and scratch memory, all allocated at the start, and the operators that the
// layers of both families (layers.h) are made of, enqueued. It announces its parts under the names of the CPU's.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "workload/config.h"
#include "workload/cuda/operators.h"
#include "workload/generate.h"
#include "workload/layers.h"

namespace llmprof::workload::cuda {

class DeviceModel {
 public:
  // Sequences, new tokens of each in a pass, all tokens of each.
  struct Sizes {
    std::int64_t batch, most_tokens, capacity;
    std::int64_t rows() const { return batch * most_tokens; }
  };

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
  using WeightsType = DeviceWeights;
  using Scratch = Buffer;
  using Pass = DevicePass;

  DeviceModel(const ModelConfig& config, DeviceWeights weights, Device& device, const Sizes& sizes);

  // The part in which families differ: x_ = layer(x_).
  virtual void run_layer(const DevicePass& pass, std::int64_t layer) = 0;

  // Of so many values in a row, for the largest pass.
  Buffer scratch(std::int64_t columns) const { return {run_.device(), run_.bytes(sizes_.rows() * columns)}; }
  static Pointer values(const Buffer& of, const DevicePass& /*pass*/, std::int64_t /*columns*/) { return of.pointer(); }
  Pointer normed() const { return normed_.pointer(); }  // (B, T, C)
  Pointer mixed() const { return mixed_.pointer(); }    // (B, T, H·D): output of attention

  void normalise(const DeviceNorm& norm, const DevicePass& pass) {
    run_.normalise(norm, config_, x_.pointer(), config_.hidden, pass.rows(), normed());
  }
  void project(const DeviceLinear& linear, Pointer x, const DevicePass& pass, Pointer y) {
    run_.project(linear, x, pass.rows(), Store::kReplace, y);
  }
  void add_projected(const DeviceLinear& linear, Pointer x, const DevicePass& pass) {
    run_.project(linear, x, pass.rows(), Store::kAccumulate, x_.pointer());
  }
  void sum_over_ranks(const DevicePass& /*pass*/) {}  // one GPU has the whole model
  void cache(const DevicePass& pass, std::int64_t layer, Pointer qkv) {
    run_.cache(pass, config_, qkv, cache_of(layer));
  }
  void rotate_and_cache(const DevicePass& pass, std::int64_t layer, Pointer q, Pointer k, Pointer v) {
    run_.rotate_and_cache(pass, config_, q, k, v, cosine_.pointer(), sine_.pointer(), cache_of(layer));
  }
  void attend(const DevicePass& pass, std::int64_t layer, Pointer q, std::int64_t row_stride) {
    run_.attend(pass, config_, {q, row_stride}, cache_of(layer), partial_.pointer(), mixed());
  }
  void gelu(Pointer x, std::int64_t count) { run_.gelu(x, count, x); }
  void silu_multiply(Pointer gate, Pointer up, std::int64_t count) { run_.silu_multiply(gate, up, count); }

  DeviceWeights weights_;
  ModuleNames names_;

 private:
  DevicePass pass_of(std::int64_t tokens) const { return {sizes_.batch, tokens, inputs_.pointer()}; }
  LayerCache cache_of(std::int64_t layer) const;

  ModelConfig config_;
  Operators run_;
  Sizes sizes_;
  Pointer token_table_, position_table_ = 0;  // (V, C); (positions, C), or none
  DeviceNorm last_norm_;
  DeviceLinear head_;
  llmprof_name embed_name_, last_norm_name_, head_name_;
  Buffer x_;  // (B, T, C): the residual stream
  Buffer normed_, mixed_;
  Buffer partial_;        // of attention in decode
  Buffer inputs_;         // int32: position, tokens (B, T)
  Buffer cache_;          // keys of all layers, then their values
  Buffer logits_;         // (B, V), float32
  Buffer cosine_, sine_;  // rotary positions: (capacity, D/2), float32
};

std::unique_ptr<DeviceModel> make_device_model(const ModelConfig& config, DeviceWeights weights, Device& device,
                                               const GenerateOptions& options);

// Generation on a device: passes, and decode as one CUDA graph if wished.

enum class Decode : std::uint8_t {
  kLaunches,  // every kernel of a step is launched
  kGraph,     // captured before the first step, then launched as one
};

class DeviceRunner final : public Runner {
 public:
  DeviceRunner(Device& device, std::unique_ptr<DeviceModel> model, const GenerateOptions& options, Decode decode);
  const ModelConfig& config() const override { return model_->config(); }
  Result<void> prepare(std::span<const Token> prompts) override;
  Result<void> run(std::int64_t position, std::span<const Token> tokens, std::span<Token> next) override;
  const DeviceModel& model() const { return *model_; }

 private:
  bool greedy() const { return options_.sampler.kind == Sampler::Kind::kGreedy; }
  void enqueue(std::int64_t tokens);
  void sample_on_host(std::int64_t position, std::span<Token> next);

  Device& device_;
  std::unique_ptr<DeviceModel> model_;
  GenerateOptions options_;
  Decode decode_;
  std::unique_ptr<Graph> graph_;
  std::vector<float> logits_;  // (B, V), where the host samples
  bool holds_inputs_ = false;  // the device has chosen them itself
};

}  // namespace llmprof::workload::cuda
