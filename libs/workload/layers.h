#pragma once
// The layers of both families: their weights, the names they announce their parts under, and their forward pass. Each
// is written once: an Engine (Model on the CPU, cuda::DeviceModel on a GPU) computes or enqueues the operators.
// Inference and training share weights and names, so that their parts line up in a profile.

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "llmprof/annotate.h"
#include "workload/config.h"

namespace llmprof::workload {

// Paths in the model, registered with the listening tool once. Owns the texts: a registered name refers to its text.
class ModuleNames {
 public:
  ModuleNames() = default;
  ModuleNames(const ModuleNames&) = delete;
  llmprof_name add(std::string path) {
    texts_.push_back(std::move(path));
    return llmprof_register(texts_.back().c_str());
  }

 private:
  std::deque<std::string> texts_;  // elements never move
};

// Calls `body` and announces it as the module `name`.
template <class Body>
void within(const llmprof_name& name, Body&& body) {
  const llmprof::Module range(name);
  body();
}

// What stands around the layers, by family. Without a position table: positions are rotary.
struct OuterNames {
  const char *embedding, *positions, *norm, *layers;
};
constexpr OuterNames outer_names(Family family) {
  return family == Family::kGpt2 ? OuterNames{"wte", "wpe", "ln_f", "h."}
                                 : OuterNames{"embed_tokens", nullptr, "norm", "layers."};
}

// ---- GPT-2: LayerNorm before each half of a layer, learned positions, one product for Q, K and V, GELU -----------

struct Gpt2LayerNames {
  llmprof_name layer, ln_1, attn, c_attn, core, c_proj, ln_2, mlp, mlp_c_fc, act, mlp_c_proj;
};
Gpt2LayerNames gpt2_layer_names(ModuleNames& names, const std::string& path);  // "h.3"

template <class Source>  // Weights, or cuda::DeviceWeights
struct Gpt2Layer {
  Gpt2Layer(const Source& w, ModuleNames& all, const std::string& path)
      : names(gpt2_layer_names(all, path)),
        ln_1(w.norm(path + ".ln_1")),
        ln_2(w.norm(path + ".ln_2")),
        c_attn(w.linear(path + ".attn.c_attn")),
        c_proj(w.linear(path + ".attn.c_proj")),
        mlp_c_fc(w.linear(path + ".mlp.c_fc")),
        mlp_c_proj(w.linear(path + ".mlp.c_proj")) {}

  Gpt2LayerNames names;
  typename Source::NormType ln_1, ln_2;
  typename Source::LinearType c_attn, c_proj, mlp_c_fc, mlp_c_proj;
};

template <class Engine>
class Gpt2 final : public Engine {
 public:
  template <class... Arguments>
  explicit Gpt2(const ModelConfig& config, Arguments&&... arguments)
      : Engine(config, std::forward<Arguments>(arguments)...),
        qkv_(this->scratch(3 * config.hidden)),
        inner_(this->scratch(config.intermediate)) {
    for (std::int64_t i = 0; i < config.layers; ++i)
      layers_.emplace_back(this->weights_, this->names_, "h." + std::to_string(i));
  }

 private:
  void run_layer(const typename Engine::Pass& pass, std::int64_t number) override {
    const auto& layer = layers_[static_cast<std::size_t>(number)];
    const Gpt2LayerNames& names = layer.names;
    within(names.layer, [&] {
      within(names.ln_1, [&] { this->normalise(layer.ln_1, pass); });
      within(names.attn, [&] {
        const auto qkv = this->values(qkv_, pass, layer.c_attn.out);
        within(names.c_attn, [&] { this->project(layer.c_attn, this->normed(), pass, qkv); });
        within(names.core, [&] {
          this->cache(pass, number, qkv);
          this->attend(pass, number, qkv, layer.c_attn.out);
        });
        within(names.c_proj, [&] { this->add_projected(layer.c_proj, this->mixed(), pass); });
      });
      within(names.ln_2, [&] { this->normalise(layer.ln_2, pass); });
      within(names.mlp, [&] {
        const auto inner = this->values(inner_, pass, layer.mlp_c_fc.out);
        within(names.mlp_c_fc, [&] { this->project(layer.mlp_c_fc, this->normed(), pass, inner); });
        within(names.act, [&] { this->gelu(inner, pass.rows() * layer.mlp_c_fc.out); });
        within(names.mlp_c_proj, [&] { this->add_projected(layer.mlp_c_proj, inner, pass); });
      });
    });
  }

  std::vector<Gpt2Layer<typename Engine::WeightsType>> layers_;
  typename Engine::Scratch qkv_;    // (B, T, 3C)
  typename Engine::Scratch inner_;  // (B, T, F)
};

// ---- Llama: RMSNorm before each half of a layer, rotary positions, grouped key-value heads, SwiGLU ---------------

struct LlamaLayerNames {
  llmprof_name layer, input_layernorm, self_attn, q_proj, k_proj, v_proj, rope, core, o_proj;
  llmprof_name post_attention_layernorm, mlp, gate_proj, up_proj, act, down_proj;
};
LlamaLayerNames llama_layer_names(ModuleNames& names, const std::string& path);  // "layers.3"

template <class Source>
struct LlamaLayer {
  LlamaLayer(const Source& w, ModuleNames& all, const std::string& path)
      : names(llama_layer_names(all, path)),
        input_layernorm(w.norm(path + ".input_layernorm")),
        post_attention_layernorm(w.norm(path + ".post_attention_layernorm")),
        q_proj(w.linear(path + ".self_attn.q_proj")),
        k_proj(w.linear(path + ".self_attn.k_proj")),
        v_proj(w.linear(path + ".self_attn.v_proj")),
        o_proj(w.linear(path + ".self_attn.o_proj")),
        gate_proj(w.linear(path + ".mlp.gate_proj")),
        up_proj(w.linear(path + ".mlp.up_proj")),
        down_proj(w.linear(path + ".mlp.down_proj")) {}

  LlamaLayerNames names;
  typename Source::NormType input_layernorm, post_attention_layernorm;
  typename Source::LinearType q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj;
};

template <class Engine>
class Llama final : public Engine {
 public:
  template <class... Arguments>
  explicit Llama(const ModelConfig& config, Arguments&&... arguments)
      : Engine(config, std::forward<Arguments>(arguments)...),
        q_(this->scratch(config.heads * config.head_dim)),
        k_(this->scratch(config.kv_heads * config.head_dim)),
        v_(this->scratch(config.kv_heads * config.head_dim)),
        gate_(this->scratch(config.intermediate)),
        up_(this->scratch(config.intermediate)) {
    for (std::int64_t i = 0; i < config.layers; ++i)
      layers_.emplace_back(this->weights_, this->names_, "layers." + std::to_string(i));
  }

 private:
  void run_layer(const typename Engine::Pass& pass, std::int64_t number) override {
    const auto& layer = layers_[static_cast<std::size_t>(number)];
    const LlamaLayerNames& names = layer.names;
    const auto projected = [&](const llmprof_name& name, const auto& linear, typename Engine::Scratch& scratch) {
      const auto out = this->values(scratch, pass, linear.out);
      within(name, [&] { this->project(linear, this->normed(), pass, out); });
      return out;
    };
    within(names.layer, [&] {
      within(names.input_layernorm, [&] { this->normalise(layer.input_layernorm, pass); });
      within(names.self_attn, [&] {
        const auto q = projected(names.q_proj, layer.q_proj, q_);
        const auto k = projected(names.k_proj, layer.k_proj, k_);
        const auto v = projected(names.v_proj, layer.v_proj, v_);
        within(names.rope, [&] { this->rotate_and_cache(pass, number, q, k, v); });
        within(names.core, [&] { this->attend(pass, number, q, layer.q_proj.out); });
        within(names.o_proj, [&] { this->add_projected(layer.o_proj, this->mixed(), pass); });
        this->sum_over_ranks(pass);
      });
      within(names.post_attention_layernorm, [&] { this->normalise(layer.post_attention_layernorm, pass); });
      within(names.mlp, [&] {
        const auto gate = projected(names.gate_proj, layer.gate_proj, gate_);
        const auto up = projected(names.up_proj, layer.up_proj, up_);
        within(names.act, [&] { this->silu_multiply(gate, up, pass.rows() * layer.up_proj.out); });
        within(names.down_proj, [&] { this->add_projected(layer.down_proj, gate, pass); });
        this->sum_over_ranks(pass);
      });
    });
  }

  std::vector<LlamaLayer<typename Engine::WeightsType>> layers_;
  typename Engine::Scratch q_;          // (B, T, H, D)
  typename Engine::Scratch k_, v_;      // (B, T, G, D)
  typename Engine::Scratch gate_, up_;  // (B, T, F)
};

// The model of the config's family on an engine.
template <class Engine, class... Arguments>
std::unique_ptr<Engine> make_family(const ModelConfig& config, Arguments&&... arguments) {
  if (config.family == Family::kGpt2)
    return std::make_unique<Gpt2<Engine>>(config, std::forward<Arguments>(arguments)...);
  return std::make_unique<Llama<Engine>>(config, std::forward<Arguments>(arguments)...);
}

}  // namespace llmprof::workload
