#pragma once
// A transformer on a device: weights, cache and scratch memory, all allocated at the start, and the operators that the
// layers of both families (layers.h) are made of, enqueued. It announces its parts under the names of the CPU's.
// DeviceModel runs sequences of equal lengths (infer); PagedModel (paged_model.h) those of a server.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "workload/config.h"
#include "workload/cuda/operators.h"
#include "workload/generate.h"
#include "workload/layers.h"

namespace llmprof::workload::cuda {

// What models on a device share: the weights, the residual stream, and the operators that work row by row.
class DeviceRows {
 public:
  virtual ~DeviceRows() = default;
  const ModelConfig& config() const { return config_; }

 protected:
  using WeightsType = DeviceWeights;
  using Scratch = Buffer;

  // Passes of at most so many rows, at positions below `positions`.
  DeviceRows(const ModelConfig& config, DeviceWeights weights, Device& device, std::int64_t rows,
             std::int64_t positions);

  // Of so many values in a row, for the largest pass.
  Buffer scratch(std::int64_t columns) const { return {run_.device(), run_.bytes(rows_ * columns)}; }
  static Pointer values(const Buffer& of, const auto& /*pass*/, std::int64_t /*columns*/) { return of.pointer(); }
  Pointer x() const { return x_.pointer(); }            // (rows, C): the residual stream
  Pointer normed() const { return normed_.pointer(); }  // (rows, C)
  Pointer mixed() const { return mixed_.pointer(); }    // (rows, H·D): output of attention

  void normalise(const DeviceNorm& norm, const auto& pass) {
    run_.normalise(norm, config_, x_.pointer(), config_.hidden, pass.rows(), normed());
  }
  void project(const DeviceLinear& linear, Pointer x, const auto& pass, Pointer y) {
    run_.project(linear, x, pass.rows(), Store::kReplace, y);
  }
  void add_projected(const DeviceLinear& linear, Pointer x, const auto& pass) {
    run_.project(linear, x, pass.rows(), Store::kAccumulate, x_.pointer());
  }
  void sum_over_ranks(const auto& /*pass*/) {}  // one GPU has the whole model
  void gelu(Pointer x, std::int64_t count) { run_.gelu(x, count, x); }
  void silu_multiply(Pointer gate, Pointer up, std::int64_t count) { run_.silu_multiply(gate, up, count); }
  // The logits of rows of the residual stream, one every `stride` values from `x` on. Uses normed().
  void logits_of(Pointer x, std::int64_t stride, std::int64_t rows, Pointer logits);

  DeviceWeights weights_;
  ModuleNames names_;
  ModelConfig config_;
  Operators run_;
  Pointer token_table_, position_table_ = 0;  // (V, C); (positions, C), or none
  llmprof_name embed_name_;
  Buffer cosine_, sine_;  // rotary positions: (positions, D/2), float32

 private:
  std::int64_t rows_;
  DeviceNorm last_norm_;
  DeviceLinear head_;
  llmprof_name last_norm_name_, head_name_;
  Buffer x_, normed_, mixed_;
};

class DeviceModel : public DeviceRows {
 public:
  // Sequences, new tokens of each in a pass, all tokens of each.
  struct Sizes {
    std::int64_t batch, most_tokens, capacity;
    std::int64_t rows() const { return batch * most_tokens; }
  };

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
  using Pass = DevicePass;

  DeviceModel(const ModelConfig& config, DeviceWeights weights, Device& device, const Sizes& sizes);

  // The part in which families differ: x = layer(x).
  virtual void run_layer(const DevicePass& pass, std::int64_t layer) = 0;

  void cache(const DevicePass& pass, std::int64_t layer, Pointer qkv) {
    run_.cache(pass, config_, qkv, cache_of(layer));
  }
  void rotate_and_cache(const DevicePass& pass, std::int64_t layer, Pointer q, Pointer k, Pointer v) {
    run_.rotate_and_cache(pass, config_, q, k, v, cosine_.pointer(), sine_.pointer(), cache_of(layer));
  }
  void attend(const DevicePass& pass, std::int64_t layer, Pointer q, std::int64_t row_stride) {
    run_.attend(pass, config_, {q, row_stride}, cache_of(layer), partial_.pointer(), mixed());
  }

 private:
  DevicePass pass_of(std::int64_t tokens) const { return {sizes_.batch, tokens, inputs_.pointer()}; }
  LayerCache cache_of(std::int64_t layer) const;

  Sizes sizes_;
  Buffer partial_;  // of attention in decode
  Buffer inputs_;   // int32: position, tokens (B, T)
  Buffer cache_;    // keys of all layers, then their values
  Buffer logits_;   // (B, V), float32
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
