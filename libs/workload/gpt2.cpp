// The GPT-2 family: LayerNorm before each half of a layer, learned positions, one product for Q, K and V, GELU.

#include <algorithm>
#include <utility>
#include <vector>

#include "workload/gpt2_layer.h"
#include "workload/kernels.h"
#include "workload/model.h"

namespace llmprof::workload {
namespace {

class Gpt2 final : public Model {
 public:
  Gpt2(const ModelConfig& config, Weights weights, ThreadPool& pool);

 private:
  void embed(const Pass& pass) override;
  void run_layer(const Pass& pass, std::int64_t layer) override;
  void final_norm(const float* x, std::int64_t rows, float* out) override;
  void attention(const Pass& pass, std::int64_t layer);
  void mlp(const Pass& pass, std::int64_t layer);
  void cache_keys_and_values(const Pass& pass, std::int64_t layer);

  std::vector<Gpt2LayerWeights<Weights>> layers_;
  std::vector<Gpt2LayerNames> layer_names_;
  const float* token_embedding_;     // (V, C)
  const float* position_embedding_;  // (positions, C)
  Norm ln_f_;
  llmprof_name embed_name_, ln_f_name_;
  FloatBuffer qkv_;    // (B, T, 3C)
  FloatBuffer inner_;  // (B, T, F)
};

Gpt2::Gpt2(const ModelConfig& config, Weights weights, ThreadPool& pool)
    : Model(config, std::move(weights), pool),
      token_embedding_(weights_.tensor("wte.weight")),
      position_embedding_(weights_.tensor("wpe.weight")),
      ln_f_(weights_.norm("ln_f")),
      embed_name_(names_.add("wte")),
      ln_f_name_(names_.add("ln_f")) {
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    const std::string path = "h." + std::to_string(layer);
    layers_.push_back(gpt2_layer_weights(weights_, path));
    layer_names_.push_back(gpt2_layer_names(names_, path));
  }
}

void Gpt2::embed(const Pass& pass) {
  const llmprof::Module range(embed_name_);
  const std::int64_t c = config_.hidden;
  for (std::int64_t row = 0; row < pass.rows(); ++row) {
    const std::int64_t position = pass.position + row % pass.tokens;
    std::copy_n(token_embedding_ + pass.ids[static_cast<std::size_t>(row)] * c, c, pass.x + row * c);
    kernels().add(pass.x + row * c, position_embedding_ + position * c, c);
  }
}

void Gpt2::run_layer(const Pass& pass, std::int64_t layer) {
  const llmprof::Module range(layer_names_[static_cast<std::size_t>(layer)].layer);
  attention(pass, layer);
  mlp(pass, layer);
}

void Gpt2::attention(const Pass& pass, std::int64_t layer) {
  const Gpt2LayerWeights<Weights>& w = layers_[static_cast<std::size_t>(layer)];
  const Gpt2LayerNames& names = layer_names_[static_cast<std::size_t>(layer)];
  const std::int64_t rows = pass.rows();
  {
    const llmprof::Module range(names.ln_1);
    normalise(w.ln_1, pass.x, rows, normed_.data());
  }
  const llmprof::Module range(names.attn);
  {
    const llmprof::Module part(names.c_attn);
    project(w.c_attn, normed_.data(), rows, Store::kReplace, qkv_.reserve(rows * w.c_attn.out));
  }
  {
    const llmprof::Module part(names.core);
    cache_keys_and_values(pass, layer);
    attend({.config = config_,
            .pass = pass,
            .queries = {.data = qkv_.data(), .row_stride = w.c_attn.out},
            .cache = pass.cache,
            .layer = layer,
            .scores = scores_,
            .out = mixed_.data(),
            .pool = pool_});
  }
  const llmprof::Module part(names.c_proj);
  project(w.c_proj, mixed_.data(), rows, Store::kAccumulate, pass.x);
}

void Gpt2::cache_keys_and_values(const Pass& pass, std::int64_t layer) {
  const std::int64_t c = config_.hidden;
  const std::int64_t dim = config_.head_dim;
  pool_.parallel_for(pass.rows(), std::max<std::int64_t>(1, (1 << 15) / c), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t sequence = row / pass.tokens;
      const std::int64_t position = pass.position + row % pass.tokens;
      const float* const key = qkv_.data() + row * 3 * c + c;  // (H, D)
      for (std::int64_t head = 0; head < config_.heads; ++head) {
        std::copy_n(key + head * dim, dim, pass.cache.keys(layer, sequence, head) + position * dim);
        std::copy_n(key + c + head * dim, dim, pass.cache.values(layer, sequence, head) + position * dim);
      }
    }
  });
}

void Gpt2::mlp(const Pass& pass, std::int64_t layer) {
  const Gpt2LayerWeights<Weights>& w = layers_[static_cast<std::size_t>(layer)];
  const Gpt2LayerNames& names = layer_names_[static_cast<std::size_t>(layer)];
  const std::int64_t rows = pass.rows();
  {
    const llmprof::Module range(names.ln_2);
    normalise(w.ln_2, pass.x, rows, normed_.data());
  }
  const llmprof::Module range(names.mlp);
  float* const inner = inner_.reserve(rows * config_.intermediate);
  {
    const llmprof::Module part(names.mlp_c_fc);
    project(w.mlp_c_fc, normed_.data(), rows, Store::kReplace, inner);
  }
  {
    const llmprof::Module part(names.act);
    pool_.parallel_for(rows * config_.intermediate, 1 << 14,
                       [&](std::int64_t begin, std::int64_t end) { kernels().gelu(inner + begin, end - begin); });
  }
  const llmprof::Module part(names.mlp_c_proj);
  project(w.mlp_c_proj, inner, rows, Store::kAccumulate, pass.x);
}

void Gpt2::final_norm(const float* x, std::int64_t rows, float* out) {
  const llmprof::Module range(ln_f_name_);
  normalise(ln_f_, x, rows, out);
}

}  // namespace

std::unique_ptr<Model> make_gpt2(const ModelConfig& config, Weights weights, ThreadPool& pool) {
  return std::make_unique<Gpt2>(config, std::move(weights), pool);
}

}  // namespace llmprof::workload
