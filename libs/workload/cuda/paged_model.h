#pragma once
// The model of a server on a device: rows of new tokens of sequences of different lengths, over a KV cache in blocks, a
// kernel at a time. All memory is allocated at the start, for the largest step.

#include <vector>

#include "workload/cuda/device_model.h"
#include "workload/serve/step_runner.h"

namespace llmprof::workload::cuda {

class PagedModel : public DeviceRows {
 public:
  struct Sizes {
    std::int64_t rows, sequences;       // of a step
    std::int64_t positions;             // tokens of a sequence
    std::int64_t blocks, block_tokens;  // of the cache
  };

  // Copies what a step is made of to the device; then enqueues it. Logits (sampled, V), float32, are at logits().
  void set_inputs(const StepInput& input);
  void forward();
  std::int64_t sampled() const { return sampled_; }
  // Both wait for the device: the likeliest tokens, or the logits to choose from.
  void read_likeliest(std::span<Token> next);
  void read_logits(std::span<float> logits) const;

 protected:
  using Pass = PagedPass;

  PagedModel(const ModelConfig& config, DeviceWeights weights, Device& device, const Sizes& sizes);

  // The part in which families differ: x = layer(x).
  virtual void run_layer(const PagedPass& pass, std::int64_t layer) = 0;

  void cache(const PagedPass& pass, std::int64_t layer, Pointer qkv) {
    run_.cache(pass, config_, qkv, cache_of(layer));
  }
  void rotate_and_cache(const PagedPass& pass, std::int64_t layer, Pointer q, Pointer k, Pointer v) {
    run_.rotate_and_cache(pass, config_, q, k, v, cosine_.pointer(), sine_.pointer(), cache_of(layer));
  }
  void attend(const PagedPass& pass, std::int64_t layer, Pointer q, std::int64_t row_stride) {
    run_.attend(pass, config_, {q, row_stride}, cache_of(layer), mixed());
  }

 private:
  PagedLayer cache_of(std::int64_t layer) const;
  Pointer input(std::int64_t place) const {
    return inputs_.pointer() + static_cast<Pointer>(place) * sizeof(std::int32_t);
  }

  Sizes sizes_;
  Buffer inputs_;    // int32: see PagedPass; behind it the rows that are sampled
  Buffer cache_;     // keys of all layers, then their values
  Buffer gathered_;  // (sampled, C)
  Buffer logits_;    // (sampled, V), float32
  Buffer likeliest_;  // int32: a number that nobody reads, then the tokens
  std::vector<std::int32_t> staged_;
  std::int64_t rows_now_ = 0, sampled_ = 0, sampled_place_ = 0;
};

class DeviceStepRunner final : public StepRunner {
 public:
  DeviceStepRunner(Device& device, const ModelConfig& config, DeviceWeights weights, const PagedModel::Sizes& sizes);
  const ModelConfig& config() const override { return model_->config(); }
  Result<void> prepare() override;
  Result<void> run(const StepInput& input, std::span<Token> next) override;
  // Of the step before, for tests.
  void read_logits(std::span<float> logits) const { model_->read_logits(logits); }

 private:
  Device& device_;
  std::unique_ptr<PagedModel> model_;
  std::int64_t block_tokens_, most_rows_;
  std::vector<float> logits_;  // where the host samples
};

}  // namespace llmprof::workload::cuda
