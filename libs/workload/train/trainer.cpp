#include "workload/train/trainer.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "workload/kernels.h"

namespace llmprof::workload {
namespace {

std::int64_t worthwhile_rows(std::int64_t n) { return std::max<std::int64_t>(1, (1 << 15) / n); }

}  // namespace

Trainer::Trainer(const ModelConfig& config, Weights weights, std::int64_t batch, std::int64_t tokens, ThreadPool& pool)
    : config_(config),
      weights_(std::move(weights)),
      gradients_(config),
      batch_(batch),
      tokens_(tokens),
      rows_(batch * tokens),
      pool_(pool),
      ln_f_(weights_.norm("ln_f")),
      head_(weights_.linear("wte")),
      embed_name_(names_.add("wte")),
      ln_f_name_(names_.add("ln_f")),
      head_name_(names_.add("lm_head")),
      loss_name_(names_.add("loss")),
      logits_(rows_ * config.vocab),
      dx_(rows_ * config.hidden),
      dnormed_(rows_ * config.hidden),
      dinner_(rows_ * config.intermediate),
      dqkv_(rows_ * 3 * config.hidden) {
  LLMPROF_ASSERT(config.family == Family::kGpt2 && tokens <= config.positions);
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    const std::string path = "h." + std::to_string(layer);
    layers_.push_back(gpt2_layer_weights(weights_, path));
    layer_names_.push_back(gpt2_layer_names(names_, path));
  }
  keep_activations();
}

void Trainer::keep_activations() {
  const std::int64_t stream = rows_ * config_.hidden;
  const std::int64_t inner = rows_ * config_.intermediate;
  const std::int64_t squares = batch_ * config_.heads * tokens_ * tokens_;
  const std::int64_t of_layer = 8 * stream + 2 * inner + squares;  // qkv is three streams wide
  float* next = memory_.reserve(config_.layers * of_layer + 2 * stream);
  const auto take = [&](std::int64_t count) { return std::exchange(next, next + count); };
  for (std::int64_t layer = 0; layer < config_.layers; ++layer) {
    kept_.push_back({.x = take(stream),
                     .ln_1 = take(stream),
                     .qkv = take(3 * stream),
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

CausalAttention Trainer::attention_of(const Kept& kept) const {
  return {.batch = batch_,
          .tokens = tokens_,
          .heads = config_.heads,
          .head_dim = config_.head_dim,
          .qkv = kept.qkv,
          .probabilities = kept.probabilities,
          .pool = pool_};
}

// ---- forward ---------------------------------------------------------------------------------------------------

double Trainer::forward(std::span<const Token> inputs, std::span<const Token> targets) {
  LLMPROF_ASSERT(std::ssize(inputs) == rows_ && std::ssize(targets) == rows_);
  inputs_.assign(inputs.begin(), inputs.end());
  targets_.assign(targets.begin(), targets.end());
  embed();
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
    project(head_, normed_, Store::kReplace, logits_.data());
  }
  const llmprof::Module range(loss_name_);
  return cross_entropy(targets_, config_.vocab, logits_.data(), pool_);
}

void Trainer::embed() {
  const llmprof::Module range(embed_name_);
  const std::int64_t c = config_.hidden;
  const float* const positions = weights_.tensor("wpe.weight");
  float* const x = kept_.empty() ? last_ : kept_.front().x;
  pool_.parallel_for(rows_, worthwhile_rows(c), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      std::copy_n(head_.weight + inputs_[static_cast<std::size_t>(row)] * c, c, x + row * c);
      kernels().add(x + row * c, positions + row % tokens_ * c, c);
    }
  });
}

void Trainer::normalise(const Norm& norm, const float* x, float* out) {
  const std::int64_t n = config_.hidden;
  pool_.parallel_for(rows_, worthwhile_rows(n), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      kernels().layer_norm(x + row * n, norm.weight, norm.bias, static_cast<float>(config_.norm_epsilon), n,
                           out + row * n);
    }
  });
}

void Trainer::forward_attention(std::size_t layer) {
  const Gpt2LayerWeights<Weights>& w = layers_[layer];
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
    attend_forward(attention_of(kept), kept.mixed);
  }
  const llmprof::Module part(names.c_proj);
  std::copy_n(kept.x, rows_ * config_.hidden, kept.middle);
  project(w.c_proj, kept.mixed, Store::kAccumulate, kept.middle);
}

void Trainer::forward_mlp(std::size_t layer) {
  const Gpt2LayerWeights<Weights>& w = layers_[layer];
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
    pool_.parallel_for(rows_ * config_.intermediate, 1 << 14, [&](std::int64_t begin, std::int64_t end) {
      std::copy(kept.inner + begin, kept.inner + end, kept.act + begin);
      kernels().gelu(kept.act + begin, end - begin);
    });
  }
  const llmprof::Module part(names.mlp_c_proj);
  float* const out = layer + 1 < kept_.size() ? kept_[layer + 1].x : last_;
  std::copy_n(kept.middle, rows_ * config_.hidden, out);
  project(w.mlp_c_proj, kept.act, Store::kAccumulate, out);
}

// ---- backward --------------------------------------------------------------------------------------------------

void Trainer::back_through(const Linear& linear, const float* x, const float* dy, float* dx) {
  linear_backward(linear, x, dy, rows_, {gradient_of(linear.weight), gradient_of(linear.bias)}, dx, pool_);
}

void Trainer::back_through(const Norm& norm, const float* x, const float* dy, float* dx) {
  const NormInput input{x, rows_, config_.hidden, static_cast<float>(config_.norm_epsilon)};
  layer_norm_backward(norm, input, dy, {gradient_of(norm.weight), gradient_of(norm.bias)}, dx, pool_);
}

void Trainer::backward() {
  backward_head();
  for (std::size_t layer = layers_.size(); layer-- > 0;) {
    const llmprof::Module range(layer_names_[layer].layer);
    backward_mlp(layer);
    backward_attention(layer);
  }
  const llmprof::Module range(embed_name_);
  embedding_backward(inputs_, batch_, config_.hidden, dx_.data(),
                     {gradient_of(head_.weight), gradients_.tensor("wpe.weight")}, pool_);
}

void Trainer::backward_head() {
  {
    const llmprof::Module range(loss_name_);
    cross_entropy_backward(targets_, config_.vocab, logits_.data(), pool_);
  }
  {
    const llmprof::Module range(head_name_);
    back_through(head_, normed_, logits_.data(), dnormed_.data());
  }
  const llmprof::Module range(ln_f_name_);
  std::fill_n(dx_.data(), rows_ * config_.hidden, 0.0F);  // nothing lies behind: the stream's gradient begins here
  back_through(ln_f_, last_, dnormed_.data(), dx_.data());
}

void Trainer::backward_mlp(std::size_t layer) {
  const Gpt2LayerWeights<Weights>& w = layers_[layer];
  const Gpt2LayerNames& names = layer_names_[layer];
  const Kept& kept = kept_[layer];
  {
    const llmprof::Module range(names.mlp);
    {
      const llmprof::Module part(names.mlp_c_proj);
      back_through(w.mlp_c_proj, kept.act, dx_.data(), dinner_.data());
    }
    {
      const llmprof::Module part(names.act);
      gelu_backward(kept.inner, dinner_.data(), rows_ * config_.intermediate, pool_);
    }
    const llmprof::Module part(names.mlp_c_fc);
    back_through(w.mlp_c_fc, kept.ln_2, dinner_.data(), dnormed_.data());
  }
  const llmprof::Module range(names.ln_2);
  back_through(w.ln_2, kept.middle, dnormed_.data(), dx_.data());
}

void Trainer::backward_attention(std::size_t layer) {
  const Gpt2LayerWeights<Weights>& w = layers_[layer];
  const Gpt2LayerNames& names = layer_names_[layer];
  const Kept& kept = kept_[layer];
  {
    const llmprof::Module range(names.attn);
    {
      const llmprof::Module part(names.c_proj);
      back_through(w.c_proj, kept.mixed, dx_.data(), dnormed_.data());
    }
    {
      const llmprof::Module part(names.core);
      attend_backward(attention_of(kept), dnormed_.data(), dprobabilities_, dqkv_.data());
    }
    const llmprof::Module part(names.c_attn);
    back_through(w.c_attn, kept.ln_1, dqkv_.data(), dnormed_.data());
  }
  const llmprof::Module range(names.ln_1);
  back_through(w.ln_1, kept.x, dnormed_.data(), dx_.data());
}

// ---- update ----------------------------------------------------------------------------------------------------

// The tensors whose names begin with `prefix`.
void Trainer::update_tensors(std::string_view prefix, AdamW& optimizer) {
  std::int64_t offset = 0;
  for (const TensorSpec& spec : weights_.specs()) {
    if (spec.name.starts_with(prefix)) {
      optimizer.update({offset, spec.count(), spec.kind == TensorSpec::Kind::kMatrix}, gradients_.data(),
                       weights_.data(), pool_);
    }
    offset += spec.count();
  }
}

void Trainer::update(AdamW& optimizer) {
  optimizer.begin_step();
  {
    const llmprof::Module range(embed_name_);
    update_tensors("wte.", optimizer);
    update_tensors("wpe.", optimizer);
  }
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) update_layer(layer, optimizer);
  const llmprof::Module range(ln_f_name_);
  update_tensors("ln_f.", optimizer);
}

void Trainer::update_layer(std::size_t layer, AdamW& optimizer) {
  const Gpt2LayerNames& names = layer_names_[layer];
  const auto update_part = [&](const llmprof_name& name) {
    const llmprof::Module range(name);
    update_tensors(std::string(name.text) + ".", optimizer);
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

}  // namespace llmprof::workload
