#include <utility>

#include "workload/cuda/families.h"

namespace llmprof::workload::cuda {

DeviceGpt2::DeviceGpt2(const ModelConfig& config, DeviceWeights weights, Device& device, const Sizes& sizes)
    : DeviceModel(config, std::move(weights), device, sizes),
      token_embedding_(weights_.tensor("wte.weight")),
      position_embedding_(weights_.tensor("wpe.weight")),
      ln_f_(weights_.norm("ln_f")),
      embed_name_(names_.add("wte")),
      ln_f_name_(names_.add("ln_f")),
      qkv_(scratch(sizes.rows() * 3 * config.hidden)),
      inner_(scratch(sizes.rows() * config.intermediate)) {
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    const std::string path = "h." + std::to_string(layer);
    layers_.push_back(gpt2_layer_weights(weights_, path));
    layer_names_.push_back(gpt2_layer_names(names_, path));
  }
}

void DeviceGpt2::embed(const DevicePass& pass) {
  const llmprof::Module range(embed_name_);
  run_.embed(pass, token_embedding_, position_embedding_, config_.hidden, x_.pointer());
}

void DeviceGpt2::run_layer(const DevicePass& pass, std::int64_t layer) {
  const llmprof::Module range(layer_names_[static_cast<std::size_t>(layer)].layer);
  attention(pass, layer);
  mlp(pass, layer);
}

void DeviceGpt2::attention(const DevicePass& pass, std::int64_t layer) {
  const Gpt2LayerWeights<DeviceWeights>& w = layers_[static_cast<std::size_t>(layer)];
  const Gpt2LayerNames& names = layer_names_[static_cast<std::size_t>(layer)];
  {
    const llmprof::Module range(names.ln_1);
    normalise(w.ln_1, pass.rows());
  }
  const llmprof::Module range(names.attn);
  {
    const llmprof::Module part(names.c_attn);
    run_.project(w.c_attn, normed_.pointer(), pass.rows(), Store::kReplace, qkv_.pointer());
  }
  {
    const llmprof::Module part(names.core);
    run_.cache(pass, config_, qkv_.pointer(), cache_of(layer));
    run_.attend(pass, config_, {qkv_.pointer(), w.c_attn.out}, cache_of(layer), partial_.pointer(), mixed_.pointer());
  }
  const llmprof::Module part(names.c_proj);
  run_.project(w.c_proj, mixed_.pointer(), pass.rows(), Store::kAccumulate, x_.pointer());
}

void DeviceGpt2::mlp(const DevicePass& pass, std::int64_t layer) {
  const Gpt2LayerWeights<DeviceWeights>& w = layers_[static_cast<std::size_t>(layer)];
  const Gpt2LayerNames& names = layer_names_[static_cast<std::size_t>(layer)];
  {
    const llmprof::Module range(names.ln_2);
    normalise(w.ln_2, pass.rows());
  }
  const llmprof::Module range(names.mlp);
  {
    const llmprof::Module part(names.mlp_c_fc);
    run_.project(w.mlp_c_fc, normed_.pointer(), pass.rows(), Store::kReplace, inner_.pointer());
  }
  {
    const llmprof::Module part(names.act);
    run_.gelu(inner_.pointer(), pass.rows() * config_.intermediate, inner_.pointer());
  }
  const llmprof::Module part(names.mlp_c_proj);
  run_.project(w.mlp_c_proj, inner_.pointer(), pass.rows(), Store::kAccumulate, x_.pointer());
}

void DeviceGpt2::final_norm(Pointer x, std::int64_t stride, std::int64_t rows) {
  const llmprof::Module range(ln_f_name_);
  run_.normalise(ln_f_, config_, x, stride, rows, normed_.pointer());
}

}  // namespace llmprof::workload::cuda
