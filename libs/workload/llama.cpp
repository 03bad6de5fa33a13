// The Llama family: RMSNorm before each half of a layer, rotary positions, grouped key-value heads, SwiGLU.

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "workload/kernels.h"
#include "workload/model.h"

namespace llmprof::workload {
namespace {

struct LayerWeights {
  Norm input_layernorm, post_attention_layernorm;
  Linear q_proj, k_proj, v_proj, o_proj;
  Linear gate_proj, up_proj, down_proj;
};

struct LayerNames {
  llmprof_name layer, input_layernorm, self_attn, q_proj, k_proj, v_proj, rope, core, o_proj;
  llmprof_name post_attention_layernorm, mlp, gate_proj, up_proj, act, down_proj;
};

LayerWeights layer_weights(const Weights& w, const std::string& path) {
  return {.input_layernorm = w.norm(path + ".input_layernorm"),
          .post_attention_layernorm = w.norm(path + ".post_attention_layernorm"),
          .q_proj = w.linear(path + ".self_attn.q_proj"),
          .k_proj = w.linear(path + ".self_attn.k_proj"),
          .v_proj = w.linear(path + ".self_attn.v_proj"),
          .o_proj = w.linear(path + ".self_attn.o_proj"),
          .gate_proj = w.linear(path + ".mlp.gate_proj"),
          .up_proj = w.linear(path + ".mlp.up_proj"),
          .down_proj = w.linear(path + ".mlp.down_proj")};
}

LayerNames layer_names(ModuleNames& names, const std::string& path) {
  return {.layer = names.add(path),
          .input_layernorm = names.add(path + ".input_layernorm"),
          .self_attn = names.add(path + ".self_attn"),
          .q_proj = names.add(path + ".self_attn.q_proj"),
          .k_proj = names.add(path + ".self_attn.k_proj"),
          .v_proj = names.add(path + ".self_attn.v_proj"),
          .rope = names.add(path + ".self_attn.rope"),
          .core = names.add(path + ".self_attn.core"),
          .o_proj = names.add(path + ".self_attn.o_proj"),
          .post_attention_layernorm = names.add(path + ".post_attention_layernorm"),
          .mlp = names.add(path + ".mlp"),
          .gate_proj = names.add(path + ".mlp.gate_proj"),
          .up_proj = names.add(path + ".mlp.up_proj"),
          .act = names.add(path + ".mlp.act"),
          .down_proj = names.add(path + ".mlp.down_proj")};
}

class Llama final : public Model {
 public:
  Llama(const ModelConfig& config, Weights weights, ThreadPool& pool);

 private:
  void embed(const Pass& pass) override;
  void run_layer(const Pass& pass, std::int64_t layer) override;
  void final_norm(const float* x, std::int64_t rows, float* out) override;
  void self_attention(const Pass& pass, std::int64_t layer);
  void mlp(const Pass& pass, std::int64_t layer);
  void rotate_and_cache(const Pass& pass, std::int64_t layer);
  void extend_angles(std::int64_t positions);

  std::vector<LayerWeights> layers_;
  std::vector<LayerNames> layer_names_;
  const float* embedding_;  // (V, C)
  Norm norm_;
  llmprof_name embed_name_, norm_name_;
  std::vector<float> cosine_, sine_;  // (positions so far, D/2)
  FloatBuffer q_;                     // (B, T, H, D)
  FloatBuffer k_, v_;                 // (B, T, G, D)
  FloatBuffer gate_, up_;             // (B, T, F)
};

Llama::Llama(const ModelConfig& config, Weights weights, ThreadPool& pool)
    : Model(config, std::move(weights), pool),
      embedding_(weights_.tensor("embed_tokens.weight")),
      norm_(weights_.norm("norm")),
      embed_name_(names_.add("embed_tokens")),
      norm_name_(names_.add("norm")) {
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    const std::string path = "layers." + std::to_string(layer);
    layers_.push_back(layer_weights(weights_, path));
    layer_names_.push_back(layer_names(names_, path));
  }
}

// cos and sin of position · theta^(-2i/D), computed in double: angles grow with the position.
void Llama::extend_angles(std::int64_t positions) {
  const std::int64_t half = config_.head_dim / 2;
  for (auto position = static_cast<std::int64_t>(cosine_.size()) / half; position < positions; ++position) {
    for (std::int64_t i = 0; i < half; ++i) {
      const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(config_.head_dim);
      const double angle = static_cast<double>(position) * std::pow(config_.rope_theta, exponent);
      cosine_.push_back(static_cast<float>(std::cos(angle)));
      sine_.push_back(static_cast<float>(std::sin(angle)));
    }
  }
}

void Llama::embed(const Pass& pass) {
  const llmprof::Module range(embed_name_);
  extend_angles(pass.context());
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
  const LayerWeights& w = layers_[static_cast<std::size_t>(layer)];
  const LayerNames& names = layer_names_[static_cast<std::size_t>(layer)];
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
  const llmprof::Module part(names.o_proj);
  project(w.o_proj, mixed_.data(), rows, Store::kAccumulate, pass.x);
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
      const float* const cosine = cosine_.data() + position * half;
      const float* const sine = sine_.data() + position * half;
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
  const LayerWeights& w = layers_[static_cast<std::size_t>(layer)];
  const LayerNames& names = layer_names_[static_cast<std::size_t>(layer)];
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
  const llmprof::Module part(names.down_proj);
  project(w.down_proj, gate, rows, Store::kAccumulate, pass.x);
}

void Llama::final_norm(const float* x, std::int64_t rows, float* out) {
  const llmprof::Module range(norm_name_);
  normalise(norm_, x, rows, out);
}

}  // namespace

std::unique_ptr<Model> make_llama(const ModelConfig& config, Weights weights, ThreadPool& pool) {
  return std::make_unique<Llama>(config, std::move(weights), pool);
}

}  // namespace llmprof::workload
