#pragma once
// A transformer ready to run on the CPU: weights, scratch memory, and the operators that the layers of both families
// (layers.h) are made of. One pass at a time; the pool works for it.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "workload/attention.h"
#include "workload/layers.h"
#include "workload/ranks.h"

namespace llmprof::workload {

using Token = std::int32_t;

// Rotary positions: cos and sin of position · theta^(-2i/D), for the positions so far.
struct RotaryAngles {
  std::vector<float> cosine, sine;  // (positions so far, D/2)
  void extend(const ModelConfig& config, std::int64_t positions);
};

class Model {
 public:
  virtual ~Model() = default;
  const ModelConfig& config() const { return config_; }

  // Runs `tokens` (B, T) after what the cache holds, and appends them to it. Returns the logits (B, V) of the last
  // position of each sequence, valid until the next pass. The cache must have room for T more, every token < V.
  std::span<const float> forward(std::span<const Token> tokens, KvCache& cache);
  // Runs rows of tokens of sequences with different lengths, whose blocks have room for them. Returns the logits (V) of
  // the last token of each sequence that is sampled, in their order.
  std::span<const float> forward(std::span<const Token> tokens, std::span<const NewTokens> sequences, KvBlocks& cache);

 protected:
  using WeightsType = Weights;
  using Scratch = FloatBuffer;

  // `ranks`: the config and weights are this one's part of a model.
  Model(const ModelConfig& config, Weights weights, ThreadPool& pool, Ranks* ranks);

  // Where a row stands: in its sequence, and in the cache.
  struct Place {
    std::int64_t position;
    std::int64_t block, slot;
  };
  struct Pass {
    std::span<const Token> ids;  // (rows)
    std::span<const NewTokens> sequences;
    std::span<const Place> places;  // (rows)
    KvBlocks& cache;
    float* x;  // (rows, C): the residual stream
    std::int64_t rows() const { return std::ssize(ids); }
  };

  // The part in which families differ: x = layer(x).
  virtual void run_layer(const Pass& pass, std::int64_t layer) = 0;

  // Of so many values in a row: grows with the passes.
  static FloatBuffer scratch(std::int64_t /*columns*/) { return {}; }
  static float* values(FloatBuffer& of, const Pass& pass, std::int64_t columns) {
    return of.reserve(pass.rows() * columns);
  }
  float* normed() { return normed_.data(); }  // (rows, C)
  float* mixed() { return mixed_.data(); }    // (rows, H·D): output of attention

  void normalise(const Norm& norm, const Pass& pass) { normalise(norm, pass.x, pass.rows(), normed()); }
  void project(const Linear& linear, const float* x, const Pass& pass, float* y) {
    apply(linear, x, pass.rows(), Store::kReplace, y, pool_);
  }
  // The residual stream += x · Wᵀ. Where the inputs of W are split among ranks, the first rank brings the stream, all
  // of them their part of the product, and sum_over_ranks adds them up.
  void add_projected(const Linear& linear, const float* x, const Pass& pass) {
    const bool first = ranks_ == nullptr || ranks_->rank() == 0;
    apply(linear, x, pass.rows(), first ? Store::kAccumulate : Store::kReplace, pass.x, pool_);
  }
  void sum_over_ranks(const Pass& pass) { sum_over_ranks(pass.x, pass.rows() * config_.hidden); }
  // Keys and values of qkv (rows, 3, H, D) into the cache.
  void cache(const Pass& pass, std::int64_t layer, const float* qkv);
  // Turns the queries in place; turns the keys on their way into the cache; the values go there as they are.
  void rotate_and_cache(const Pass& pass, std::int64_t layer, float* q, const float* k, const float* v);
  void attend(const Pass& pass, std::int64_t layer, const float* q, std::int64_t row_stride);
  void gelu(float* x, std::int64_t count);
  void silu_multiply(float* gate, const float* up, std::int64_t count);

  Weights weights_;
  ModuleNames names_;

 private:
  void embed(const Pass& pass);
  std::span<const float> logits(const Pass& pass);
  // Rows of C: RMSNorm, or LayerNorm when there is a bias. x may be out.
  void normalise(const Norm& norm, const float* x, std::int64_t rows, float* out);
  void sum_over_ranks(float* values, std::int64_t count) {
    if (ranks_ != nullptr) ranks_->all_reduce(values, count);
  }

  ModelConfig config_;
  ThreadPool& pool_;
  Ranks* ranks_;
  const float* token_table_;     // (V, C)
  const float* position_table_;  // (positions, C), or none
  Norm last_norm_;
  Linear head_;
  llmprof_name embed_name_, last_norm_name_, head_name_;
  RotaryAngles angles_;
  std::vector<NewTokens> together_;  // of a pass over a KvCache
  std::vector<Place> places_;
  FloatBuffer residual_;  // (rows, C)
  FloatBuffer normed_, mixed_, scores_, gathered_;
  FloatBuffer last_;    // (sampled, C)
  FloatBuffer logits_;  // (sampled, V)
  FloatBuffer part_;    // (sampled, V / ranks)
};

inline std::unique_ptr<Model> make_model(const ModelConfig& config, Weights weights, ThreadPool& pool,
                                         Ranks* ranks = nullptr) {
  return make_family<Model>(config, std::move(weights), pool, ranks);
}

}  // namespace llmprof::workload
