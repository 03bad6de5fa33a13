// The Llama family: RMSNorm before each half of a layer, rotary positions, grouped key-value heads, SwiGLU.

#include <algorithm>
#include <utility>
#include <vector>

#include "workload/kernels.h"
#include "workload/llama_layer.h"
#include "workload/model.h"
#include "workload/rotary.h"

namespace llmprof::workload {
namespace {

class Llama final : public Model {
 public:
  Llama(const ModelConfig& config, Weights weights, ThreadPool& pool, Ranks* ranks);

 private:
  void embed(const Pass& pass) override;
  void run_layer(const Pass& pass, std::int64_t layer) override;
  void final_norm(const float* x, std::int64_t rows, float* out) override;
  void self_attention(const Pass& pass, std::int64_t layer);
  void mlp(const Pass& pass, std::int64_t layer);
  void rotate_and_cache(const Pass& pass, std::int64_t layer);

  std::vector<LlamaLayerWeights<Weights>> layers_;
  std::vector<LlamaLayerNames> layer_names_;
  const float* embedding_;  // (V, C)
  Norm norm_;
  llmprof_name embed_name_, norm_name_;
  RotaryAngles angles_;
  FloatBuffer q_;          // (B, T, H, D)
  FloatBuffer k_, v_;      // (B, T, G, D)
  FloatBuffer gate_, up_;  // (B, T, F)
};

Llama::Llama(const ModelConfig& config, Weights weights, ThreadPool& pool, Ranks* ranks)
    : Model(config, std::move(weights), pool, ranks),
      embedding_(weights_.tensor("embed_tokens.weight")),
      norm_(weights_.norm("norm")),
      embed_name_(names_.add("embed_tokens")),
      norm_name_(names_.add("norm")) {
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    const std::string path = "layers." + std::to_string(layer);
    layers_.push_back(llama_layer_weights(weights_, path));
    layer_names_.push_back(llama_layer_names(names_, path));
  }
}

void Llama::embed(const Pass& pass) {
  const llmprof::Module range(embed_name_);
  angles_.extend(config_, pass.context());
  const std::int64_t c = config_.hidden;
  for (std::int64_t row = 0; row < pass.rows(); ++row) {
    std::copy_n(embedding_ + pass.ids[static_cast<std::size_t>(row)] * c, c, pass.x + row * c);
  }
}

void Llama::run_layer(const Pass& pass, std::int64_t layer) {
  const llmprof::Module range(layer_names_[static_cast<std::size_t>(layer)].layer);
  self_attention(pass, layer);
  mlp(pass, layer);
}

void Llama::self_attention(const Pass& pass, std::int64_t layer) {
  const LlamaLayerWeights<Weights>& w = layers_[static_cast<std::size_t>(layer)];
  const LlamaLayerNames& names = layer_names_[static_cast<std::size_t>(layer)];
  const std::int64_t rows = pass.rows();
  float* const normed = normed_.data();
  {
    const llmprof::Module range(names.input_layernorm);
    normalise(w.input_layernorm, pass.x, rows, normed);
  }
  const llmprof::Module range(names.self_attn);
  {
    const llmprof::Module part(names.q_proj);
    project(w.q_proj, normed, rows, Store::kReplace, q_.reserve(rows * w.q_proj.out));
  }
  {
    const llmprof::Module part(names.k_proj);
    project(w.k_proj, normed, rows, Store::kReplace, k_.reserve(rows * w.k_proj.out));
  }
  {
    const llmprof::Module part(names.v_proj);
    project(w.v_proj, normed, rows, Store::kReplace, v_.reserve(rows * w.v_proj.out));
  }
  {
    const llmprof::Module part(names.rope);
    rotate_and_cache(pass, layer);
  }
  {
    const llmprof::Module part(names.core);
    attend({.config = config_,
            .pass = pass,
            .queries = {.data = q_.data(), .row_stride = w.q_proj.out},
            .cache = pass.cache,
            .layer = layer,
            .scores = scores_,
            .out = mixed_.data(),
            .pool = pool_});
  }
  {
    const llmprof::Module part(names.o_proj);
    add_projected(w.o_proj, mixed_.data(), rows, pass.x);
  }
  add_up(pass.x, rows * config_.hidden);
}

// Turns the queries in place; turns the keys on their way into the cache; the values go there as they are.
void Llama::rotate_and_cache(const Pass& pass, std::int64_t layer) {
  const std::int64_t dim = config_.head_dim;
  const std::int64_t half = dim / 2;
  const std::int64_t min_rows = std::max<std::int64_t>(1, (1 << 14) / (config_.heads * dim));
  pool_.parallel_for(pass.rows(), min_rows, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t sequence = row / pass.tokens;
      const std::int64_t position = pass.position + row % pass.tokens;
      const float* const cosine = angles_.cosine.data() + position * half;
      const float* const sine = angles_.sine.data() + position * half;
      for (std::int64_t head = 0; head < config_.heads; ++head) {
        float* const query = q_.data() + (row * config_.heads + head) * dim;
        kernels().rotate(query, cosine, sine, half, query);
      }
      for (std::int64_t head = 0; head < config_.kv_heads; ++head) {
        const std::int64_t from = (row * config_.kv_heads + head) * dim;
        kernels().rotate(k_.data() + from, cosine, sine, half, pass.cache.keys(layer, sequence, head) + position * dim);
        std::copy_n(v_.data() + from, dim, pass.cache.values(layer, sequence, head) + position * dim);
      }
    }
  });
}

void Llama::mlp(const Pass& pass, std::int64_t layer) {
  const LlamaLayerWeights<Weights>& w = layers_[static_cast<std::size_t>(layer)];
  const LlamaLayerNames& names = layer_names_[static_cast<std::size_t>(layer)];
  const std::int64_t rows = pass.rows();
  float* const normed = normed_.data();
  {
    const llmprof::Module range(names.post_attention_layernorm);
    normalise(w.post_attention_layernorm, pass.x, rows, normed);
  }
  const llmprof::Module range(names.mlp);
  float* const gate = gate_.reserve(rows * config_.intermediate);
  float* const up = up_.reserve(rows * config_.intermediate);
  {
    const llmprof::Module part(names.gate_proj);
    project(w.gate_proj, normed, rows, Store::kReplace, gate);
  }
  {
    const llmprof::Module part(names.up_proj);
    project(w.up_proj, normed, rows, Store::kReplace, up);
  }
  {
    const llmprof::Module part(names.act);
    pool_.parallel_for(rows * config_.intermediate, 1 << 14, [&](std::int64_t begin, std::int64_t end) {
      kernels().silu_multiply(gate + begin, up + begin, end - begin);
    });
  }
  {
    const llmprof::Module part(names.down_proj);
    add_projected(w.down_proj, gate, rows, pass.x);
  }
  add_up(pass.x, rows * config_.hidden);
}

void Llama::final_norm(const float* x, std::int64_t rows, float* out) {
  const llmprof::Module range(norm_name_);
  normalise(norm_, x, rows, out);
}

}  // namespace

std::unique_ptr<Model> make_llama(const ModelConfig& config, Weights weights, ThreadPool& pool, Ranks* ranks) {
  return std::make_unique<Llama>(config, std::move(weights), pool, ranks);
}

}  // namespace llmprof::workload
