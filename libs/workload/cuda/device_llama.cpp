#include <utility>

#include "workload/cuda/families.h"
#include "workload/rotary.h"

namespace llmprof::workload::cuda {

DeviceLlama::DeviceLlama(const ModelConfig& config, DeviceWeights weights, Device& device, const Sizes& sizes)
    : DeviceModel(config, std::move(weights), device, sizes),
      embedding_(weights_.tensor("embed_tokens.weight")),
      norm_(weights_.norm("norm")),
      embed_name_(names_.add("embed_tokens")),
      norm_name_(names_.add("norm")),
      cosine_(device, sizes.capacity * config.head_dim * 2),  // half a head of 4 bytes
      sine_(device, sizes.capacity * config.head_dim * 2),
      q_(scratch(sizes.rows() * config.heads * config.head_dim)),
      k_(scratch(sizes.rows() * config.kv_heads * config.head_dim)),
      v_(scratch(sizes.rows() * config.kv_heads * config.head_dim)),
      gate_(scratch(sizes.rows() * config.intermediate)),
      up_(scratch(sizes.rows() * config.intermediate)) {
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    const std::string path = "layers." + std::to_string(layer);
    layers_.push_back(llama_layer_weights(weights_, path));
    layer_names_.push_back(llama_layer_names(names_, path));
  }
  RotaryAngles angles;
  angles.extend(config, sizes.capacity);
  const auto bytes = static_cast<std::int64_t>(angles.sine.size() * sizeof(float));
  device.copy_in(cosine_.pointer(), angles.cosine.data(), bytes);
  device.copy_in(sine_.pointer(), angles.sine.data(), bytes);
}

void DeviceLlama::embed(const DevicePass& pass) {
  const llmprof::Module range(embed_name_);
  run_.embed(pass, embedding_, 0, config_.hidden, x_.pointer());
}

void DeviceLlama::run_layer(const DevicePass& pass, std::int64_t layer) {
  const llmprof::Module range(layer_names_[static_cast<std::size_t>(layer)].layer);
  self_attention(pass, layer);
  mlp(pass, layer);
}

void DeviceLlama::self_attention(const DevicePass& pass, std::int64_t layer) {
  const LlamaLayerWeights<DeviceWeights>& w = layers_[static_cast<std::size_t>(layer)];
  const LlamaLayerNames& names = layer_names_[static_cast<std::size_t>(layer)];
  const auto project = [&](const llmprof_name& name, const DeviceLinear& linear, const Buffer& out) {
    const llmprof::Module part(name);
    run_.project(linear, normed_.pointer(), pass.rows(), Store::kReplace, out.pointer());
  };
  {
    const llmprof::Module range(names.input_layernorm);
    normalise(w.input_layernorm, pass.rows());
  }
  const llmprof::Module range(names.self_attn);
  project(names.q_proj, w.q_proj, q_);
  project(names.k_proj, w.k_proj, k_);
  project(names.v_proj, w.v_proj, v_);
  {
    const llmprof::Module part(names.rope);
    run_.rotate_and_cache(pass, config_, q_.pointer(), k_.pointer(), v_.pointer(), cosine_.pointer(), sine_.pointer(),
                          cache_of(layer));
  }
  {
    const llmprof::Module part(names.core);
    run_.attend(pass, config_, {q_.pointer(), w.q_proj.out}, cache_of(layer), partial_.pointer(), mixed_.pointer());
  }
  const llmprof::Module part(names.o_proj);
  run_.project(w.o_proj, mixed_.pointer(), pass.rows(), Store::kAccumulate, x_.pointer());
}

void DeviceLlama::mlp(const DevicePass& pass, std::int64_t layer) {
  const LlamaLayerWeights<DeviceWeights>& w = layers_[static_cast<std::size_t>(layer)];
  const LlamaLayerNames& names = layer_names_[static_cast<std::size_t>(layer)];
  {
    const llmprof::Module range(names.post_attention_layernorm);
    normalise(w.post_attention_layernorm, pass.rows());
  }
  const llmprof::Module range(names.mlp);
  {
    const llmprof::Module part(names.gate_proj);
    run_.project(w.gate_proj, normed_.pointer(), pass.rows(), Store::kReplace, gate_.pointer());
  }
  {
    const llmprof::Module part(names.up_proj);
    run_.project(w.up_proj, normed_.pointer(), pass.rows(), Store::kReplace, up_.pointer());
  }
  {
    const llmprof::Module part(names.act);
    run_.silu_multiply(gate_.pointer(), up_.pointer(), pass.rows() * config_.intermediate);
  }
  const llmprof::Module part(names.down_proj);
  run_.project(w.down_proj, gate_.pointer(), pass.rows(), Store::kAccumulate, x_.pointer());
}

void DeviceLlama::final_norm(Pointer x, std::int64_t stride, std::int64_t rows) {
  const llmprof::Module range(norm_name_);
  run_.normalise(norm_, config_, x, stride, rows, normed_.pointer());
}

}  // namespace llmprof::workload::cuda
