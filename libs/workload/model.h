#pragma once
// A transformer ready to run: weights, scratch memory, and the names it announces its parts under.
// One pass at a time; the pool works for it.

#include <cstdint>
#include <memory>
#include <span>

#include "workload/attention.h"
#include "workload/buffer.h"
#include "workload/config.h"
#include "workload/kv_cache.h"
#include "workload/module_names.h"
#include "workload/ranks.h"
#include "workload/thread_pool.h"
#include "workload/weights.h"

namespace llmprof::workload {

using Token = std::int32_t;

class Model {
 public:
  virtual ~Model() = default;
  const ModelConfig& config() const { return config_; }

  // Runs `tokens` (B, T) after what the cache holds, and appends them to it. Returns the logits (B, V) of the last
  // position of each sequence, valid until the next pass. The cache must have room for T more, every token < V.
  std::span<const float> forward(std::span<const Token> tokens, KvCache& cache);

 protected:
  // `ranks`: the config and weights are this one's part of a model.
  Model(const ModelConfig& config, Weights weights, ThreadPool& pool, Ranks* ranks = nullptr);

  struct Pass : NewTokens {
    std::span<const Token> ids;  // (B, T)
    KvCache& cache;
    float* x;  // (B, T, C): the residual stream
  };

  // The two parts in which families differ.
  virtual void embed(const Pass& pass) = 0;                          // writes x
  virtual void run_layer(const Pass& pass, std::int64_t layer) = 0;  // x = layer(x)
  virtual void final_norm(const float* x, std::int64_t rows, float* out) = 0;

  // Normalises rows of C: RMSNorm, or LayerNorm when there is a bias. x may be out.
  void normalise(const Norm& norm, const float* x, std::int64_t rows, float* out);
  void project(const Linear& linear, const float* x, std::int64_t rows, Store store, float* y) {
    apply(linear, x, rows, store, y, pool_);
  }
  // y += x · Wᵀ, of a matrix whose inputs are split: the first rank brings y, all of them their part of the product.
  void add_projected(const Linear& linear, const float* x, std::int64_t rows, float* y) {
    project(linear, x, rows, ranks_ == nullptr || ranks_->rank() == 0 ? Store::kAccumulate : Store::kReplace, y);
  }
  void add_up(float* values, std::int64_t count) {
    if (ranks_ != nullptr) ranks_->all_reduce(values, count);
  }

  ModelConfig config_;
  Weights weights_;
  ThreadPool& pool_;
  Ranks* ranks_;
  ModuleNames names_;
  FloatBuffer normed_;  // (B, T, C)
  FloatBuffer mixed_;   // (B, T, H·D): output of attention
  FloatBuffer scores_;

 private:
  std::span<const float> logits(const Pass& pass);

  Linear head_;
  llmprof_name head_name_;
  FloatBuffer residual_;  // (B, T, C)
  FloatBuffer last_;      // (B, C)
  FloatBuffer logits_;    // (B, V)
  FloatBuffer part_;      // (B, V / ranks)
};

std::unique_ptr<Model> make_gpt2(const ModelConfig& config, Weights weights, ThreadPool& pool);
std::unique_ptr<Model> make_llama(const ModelConfig& config, Weights weights, ThreadPool& pool, Ranks* ranks = nullptr);
std::unique_ptr<Model> make_model(const ModelConfig& config, Weights weights, ThreadPool& pool, Ranks* ranks = nullptr);

}  // namespace llmprof::workload
