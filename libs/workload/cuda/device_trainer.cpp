#include "workload/cuda/device_trainer.h"

#include <cmath>
#include <utility>

#include "llmprof/annotate.h"

namespace llmprof::workload::cuda {

DeviceTrainer::DeviceTrainer(Device& device, const ModelConfig& config, const TrainOptions& options)
    : config_(config),
      optimizer_(options.optimizer),
      batch_(options.batch),
      tokens_(options.tokens),
      rows_(batch_ * tokens_),
      run_(device),
      weights_(device, config, ElementType::kFloat32),
      gradients_(device, config, ElementType::kFloat32),
      first_(device, config, ElementType::kFloat32),
      second_(device, config, ElementType::kFloat32),
      ln_f_(weights_.norm("ln_f")),
      head_(weights_.linear("wte")),
      embed_name_(names_.add("wte")),
      ln_f_name_(names_.add("ln_f")),
      head_name_(names_.add("lm_head")),
      loss_name_(names_.add("loss")),
      inputs_(device, (1 + rows_) * static_cast<std::int64_t>(sizeof(Token))),
      targets_(device, rows_ * static_cast<std::int64_t>(sizeof(Token))),
      logits_(scratch(rows_ * config.vocab)),
      losses_(device, rows_ * static_cast<std::int64_t>(sizeof(double))),
      dx_(scratch(rows_ * config.hidden)),
      dnormed_(scratch(rows_ * config.hidden)),
      dinner_(scratch(rows_ * config.intermediate)),
      dqkv_(scratch(rows_ * 3 * config.hidden)),
      dprobabilities_(scratch(rows_ * config.heads * tokens_)),
      moments_(scratch(rows_ * 2)) {
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    const std::string path = "h." + std::to_string(layer);
    layers_.push_back(gpt2_layer_weights(weights_, path));
    layer_names_.push_back(gpt2_layer_names(names_, path));
  }
  keep_activations();
}

void DeviceTrainer::keep_activations() {
  constexpr std::int64_t kAlignment = 64;  // values: 256 bytes
  const auto aligned = [](std::int64_t values) { return (values + kAlignment - 1) / kAlignment * kAlignment; };
  const std::int64_t stream = aligned(rows_ * config_.hidden), qkv = aligned(3 * rows_ * config_.hidden);
  const std::int64_t inner = aligned(rows_ * config_.intermediate);
  const std::int64_t squares = aligned(rows_ * config_.heads * tokens_);
  memory_ = scratch(config_.layers * (5 * stream + qkv + 2 * inner + squares) + 2 * stream);
  Pointer next = memory_.pointer();
  const auto take = [&](std::int64_t values) { return std::exchange(next, run_.at(next, values)); };
  for (std::int64_t layer = 0; layer < config_.layers; ++layer) {
    kept_.push_back({.x = take(stream),
                     .ln_1 = take(stream),
                     .qkv = take(qkv),
                     .probabilities = take(squares),
                     .mixed = take(stream),
                     .middle = take(stream),
                     .ln_2 = take(stream),
                     .inner = take(inner),
                     .act = take(inner)});
  }
  last_ = take(stream);
  normed_ = take(stream);
}

DeviceCausalAttention DeviceTrainer::attention_of(const Kept& kept) const {
  return {batch_, tokens_, config_.heads, config_.head_dim, kept.qkv, kept.probabilities};
}

// ---- forward ---------------------------------------------------------------------------------------------------

Result<double> DeviceTrainer::forward(std::span<const Token> inputs, std::span<const Token> targets) {
  Device& device = run_.device();
  const auto bytes = static_cast<std::int64_t>(inputs.size_bytes());
  device.clear(inputs_.pointer(), sizeof(Token));
  device.copy_in(inputs_.pointer() + sizeof(Token), inputs.data(), bytes);
  device.copy_in(targets_.pointer(), targets.data(), bytes);
  {
    const llmprof::Module range(embed_name_);
    run_.embed({batch_, tokens_, inputs_.pointer()}, head_.weight, weights_.tensor("wpe.weight"), config_.hidden,
               kept_.empty() ? last_ : kept_.front().x);
  }
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    const llmprof::Module range(layer_names_[layer].layer);
    forward_attention(layer);
    forward_mlp(layer);
  }
  {
    const llmprof::Module range(ln_f_name_);
    normalise(ln_f_, last_, normed_);
  }
  {
    const llmprof::Module range(head_name_);
    project(head_, normed_, Store::kReplace, logits_.pointer());
  }
  const llmprof::Module range(loss_name_);
  run_.cross_entropy(targets_.pointer(), rows_, config_.vocab, logits_.pointer(), losses_.pointer());
  std::vector<double> losses(inputs.size());
  device.copy_out(losses.data(), losses_.pointer(), static_cast<std::int64_t>(losses.size() * sizeof(double)));
  LLMPROF_TRY(device.status());
  double sum = 0;
  for (const double loss : losses) sum += loss;
  return sum / static_cast<double>(rows_);
}

void DeviceTrainer::forward_attention(std::size_t layer) {
  const Gpt2LayerWeights<DeviceWeights>& w = layers_[layer];
  const Gpt2LayerNames& names = layer_names_[layer];
  const Kept& kept = kept_[layer];
  {
    const llmprof::Module range(names.ln_1);
    normalise(w.ln_1, kept.x, kept.ln_1);
  }
  const llmprof::Module range(names.attn);
  {
    const llmprof::Module part(names.c_attn);
    project(w.c_attn, kept.ln_1, Store::kReplace, kept.qkv);
  }
  {
    const llmprof::Module part(names.core);
    run_.attend_forward(attention_of(kept), kept.mixed);
  }
  const llmprof::Module part(names.c_proj);
  copy_stream(kept.x, kept.middle);
  project(w.c_proj, kept.mixed, Store::kAccumulate, kept.middle);
}

void DeviceTrainer::forward_mlp(std::size_t layer) {
  const Gpt2LayerWeights<DeviceWeights>& w = layers_[layer];
  const Gpt2LayerNames& names = layer_names_[layer];
  const Kept& kept = kept_[layer];
  {
    const llmprof::Module range(names.ln_2);
    normalise(w.ln_2, kept.middle, kept.ln_2);
  }
  const llmprof::Module range(names.mlp);
  {
    const llmprof::Module part(names.mlp_c_fc);
    project(w.mlp_c_fc, kept.ln_2, Store::kReplace, kept.inner);
  }
  {
    const llmprof::Module part(names.act);
    run_.gelu(kept.inner, rows_ * config_.intermediate, kept.act);
  }
  const llmprof::Module part(names.mlp_c_proj);
  const Pointer out = layer + 1 < kept_.size() ? kept_[layer + 1].x : last_;
  copy_stream(kept.middle, out);
  project(w.mlp_c_proj, kept.act, Store::kAccumulate, out);
}

// ---- backward --------------------------------------------------------------------------------------------------

void DeviceTrainer::back_through(const DeviceLinear& linear, Pointer x, Pointer dy, Pointer dx) {
  const DeviceLinear gradient{moved(linear.weight, gradients_), moved(linear.bias, gradients_), linear.in, linear.out};
  run_.linear_backward(linear, x, dy, rows_, gradient, dx);
}

void DeviceTrainer::back_through(const DeviceNorm& norm, Pointer x, Pointer dy, Pointer dx) {
  run_.layer_norm_backward(norm, config_, x, dy, rows_, {moved(norm.weight, gradients_), moved(norm.bias, gradients_)},
                           moments_.pointer(), dx);
}

Result<void> DeviceTrainer::backward() {
  backward_head();
  for (std::size_t layer = layers_.size(); layer-- > 0;) {
    const llmprof::Module range(layer_names_[layer].layer);
    backward_mlp(layer);
    backward_attention(layer);
  }
  const llmprof::Module range(embed_name_);
  run_.embedding_backward(inputs_.pointer() + sizeof(Token), batch_, tokens_, config_.hidden, dx_.pointer(),
                          moved(head_.weight, gradients_), gradients_.tensor("wpe.weight"));
  return run_.device().finish();
}

void DeviceTrainer::backward_head() {
  {
    const llmprof::Module range(loss_name_);
    run_.cross_entropy_backward(targets_.pointer(), rows_, config_.vocab, logits_.pointer());
  }
  {
    const llmprof::Module range(head_name_);
    back_through(head_, normed_, logits_.pointer(), dnormed_.pointer());
  }
  const llmprof::Module range(ln_f_name_);
  run_.device().clear(dx_.pointer(), run_.bytes(rows_ * config_.hidden));  // the stream's gradient begins here
  back_through(ln_f_, last_, dnormed_.pointer(), dx_.pointer());
}

void DeviceTrainer::backward_mlp(std::size_t layer) {
  const Gpt2LayerWeights<DeviceWeights>& w = layers_[layer];
  const Gpt2LayerNames& names = layer_names_[layer];
  const Kept& kept = kept_[layer];
  {
    const llmprof::Module range(names.mlp);
    {
      const llmprof::Module part(names.mlp_c_proj);
      back_through(w.mlp_c_proj, kept.act, dx_.pointer(), dinner_.pointer());
    }
    {
      const llmprof::Module part(names.act);
      run_.gelu_backward(kept.inner, rows_ * config_.intermediate, dinner_.pointer());
    }
    const llmprof::Module part(names.mlp_c_fc);
    back_through(w.mlp_c_fc, kept.ln_2, dinner_.pointer(), dnormed_.pointer());
  }
  const llmprof::Module range(names.ln_2);
  back_through(w.ln_2, kept.middle, dnormed_.pointer(), dx_.pointer());
}

void DeviceTrainer::backward_attention(std::size_t layer) {
  const Gpt2LayerWeights<DeviceWeights>& w = layers_[layer];
  const Gpt2LayerNames& names = layer_names_[layer];
  const Kept& kept = kept_[layer];
  {
    const llmprof::Module range(names.attn);
    {
      const llmprof::Module part(names.c_proj);
      back_through(w.c_proj, kept.mixed, dx_.pointer(), dnormed_.pointer());
    }
    {
      const llmprof::Module part(names.core);
      run_.attend_backward(attention_of(kept), dnormed_.pointer(), dprobabilities_.pointer(), dqkv_.pointer());
    }
    const llmprof::Module part(names.c_attn);
    back_through(w.c_attn, kept.ln_1, dqkv_.pointer(), dnormed_.pointer());
  }
  const llmprof::Module range(names.ln_1);
  back_through(w.ln_1, kept.x, dnormed_.pointer(), dx_.pointer());
}

// ---- update ----------------------------------------------------------------------------------------------------

// The tensors whose names begin with `prefix`.
void DeviceTrainer::update_tensors(std::string_view prefix) {
  for (const TensorSpec& spec : weights_.specs()) {
    if (!spec.name.starts_with(prefix)) continue;
    const Pointer parameter = weights_.tensor(spec.name);
    const bool decays = spec.kind == TensorSpec::Kind::kMatrix;
    run_.adamw(adamw_step(optimizer_, step_, decays), moved(parameter, gradients_), spec.count(), parameter,
               moved(parameter, first_), moved(parameter, second_));
  }
}

Result<void> DeviceTrainer::update() {
  ++step_;
  {
    const llmprof::Module range(embed_name_);
    update_tensors("wte.");
    update_tensors("wpe.");
  }
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) update_layer(layer);
  const llmprof::Module range(ln_f_name_);
  update_tensors("ln_f.");
  return run_.device().finish();
}

void DeviceTrainer::update_layer(std::size_t layer) {
  const Gpt2LayerNames& names = layer_names_[layer];
  const auto update_part = [&](const llmprof_name& name) {
    const llmprof::Module range(name);
    update_tensors(std::string(name.text) + ".");
  };
  const llmprof::Module range(names.layer);
  update_part(names.ln_1);
  {
    const llmprof::Module part(names.attn);
    update_part(names.c_attn);
    update_part(names.c_proj);
  }
  update_part(names.ln_2);
  const llmprof::Module part(names.mlp);
  update_part(names.mlp_c_fc);
  update_part(names.mlp_c_proj);
}

}  // namespace llmprof::workload::cuda
