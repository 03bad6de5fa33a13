#pragma once
// GPT-2 in training: a forward pass that keeps what the way back needs, the backward pass, and the update. Written
// once: an Engine (CpuTraining here, cuda::DeviceTraining on a GPU) computes the operators. One step at a time.
// Announces its parts under the names of the inference model.

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "workload/buffer.h"
#include "workload/layers.h"
#include "workload/train/operators.h"

namespace llmprof::workload {

struct TrainOptions {
  std::int64_t batch = 4;    // sequences of a step
  std::int64_t tokens = 64;  // of each
  std::int64_t steps = 40;
  std::uint64_t seed = 0;  // of the weights and of the places in the text
  AdamWOptions optimizer;
};

// A model in training, on a CPU or a GPU: one step at a time, in this order.
class TrainingModel {
 public:
  virtual ~TrainingModel() = default;
  // The mean cross entropy of `targets` (B, T), each the token that follows its place in `inputs` (B, T).
  virtual Result<double> forward(std::span<const Token> inputs, std::span<const Token> targets) = 0;
  // Fills the gradients for the last forward pass.
  virtual Result<void> backward() = 0;
  virtual Result<void> update() = 0;
};

template <class Engine>
class Gpt2Trainer final : public TrainingModel {
 public:
  using WeightsType = typename Engine::WeightsType;

  // check_training must have passed. `where`: the pool, or the device.
  template <class Where>
  Gpt2Trainer(const ModelConfig& config, WeightsType weights, const TrainOptions& options, Where& where)
      : run_(config, options, where),
        optimizer_(options.optimizer),
        weights_(std::move(weights)),
        gradients_(run_.zeros()),
        first_(run_.zeros()),
        second_(run_.zeros()),
        ln_f_(weights_.norm("ln_f")),
        head_(weights_.linear("wte")),
        embed_name_(names_.add("wte")),
        ln_f_name_(names_.add("ln_f")),
        head_name_(names_.add("lm_head")),
        loss_name_(names_.add("loss")) {
    for (std::int64_t i = 0; i < config.layers; ++i) layers_.emplace_back(weights_, names_, "h." + std::to_string(i));
    allocate(config, options);
  }

  Result<double> forward(std::span<const Token> inputs, std::span<const Token> targets) override {
    run_.set_batch(inputs, targets);
    within(embed_name_,
           [&] { run_.embed(head_.weight, weights_.tensor("wpe.weight"), kept_.empty() ? last_ : kept_.front().x); });
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      within(layers_[i].names.layer, [&] {
        forward_attention(layers_[i], kept_[i]);
        forward_mlp(layers_[i], kept_[i], i + 1 < kept_.size() ? kept_[i + 1].x : last_);
      });
    }
    within(ln_f_name_, [&] { run_.normalise(ln_f_, last_, normed_); });
    within(head_name_, [&] { run_.project(head_, normed_, Store::kReplace, logits_); });
    const llmprof::Module range(loss_name_);
    return run_.cross_entropy(logits_);
  }

  Result<void> backward() override {
    within(loss_name_, [&] { run_.cross_entropy_backward(logits_); });
    within(head_name_, [&] { back_through(head_, normed_, logits_, dnormed_); });
    within(ln_f_name_, [&] {
      run_.clear_stream(dx_);  // nothing lies behind: the stream's gradient begins here
      back_through(ln_f_, last_, dnormed_, dx_);
    });
    for (std::size_t i = layers_.size(); i-- > 0;) {
      within(layers_[i].names.layer, [&] {
        backward_mlp(layers_[i], kept_[i]);
        backward_attention(layers_[i], kept_[i]);
      });
    }
    within(embed_name_,
           [&] { run_.embedding_backward(dx_, gradient_of(head_.weight), gradients_.tensor("wpe.weight")); });
    return run_.finish();
  }

  Result<void> update() override {
    ++step_;
    within(embed_name_, [&] {
      update_tensors("wte.");
      update_tensors("wpe.");
    });
    const auto update_part = [&](const llmprof_name& name) {
      within(name, [&] { update_tensors(std::string(name.text) + "."); });
    };
    for (const auto& layer : layers_) {
      within(layer.names.layer, [&] {
        update_part(layer.names.ln_1);
        within(layer.names.attn, [&] {
          update_part(layer.names.c_attn);
          update_part(layer.names.c_proj);
        });
        update_part(layer.names.ln_2);
        within(layer.names.mlp, [&] {
          update_part(layer.names.mlp_c_fc);
          update_part(layer.names.mlp_c_proj);
        });
      });
    }
    update_part(ln_f_name_);
    return run_.finish();
  }

  WeightsType& weights() { return weights_; }
  const WeightsType& gradients() const { return gradients_; }

 private:
  using Values = typename Engine::Values;  // an address of float32 values
  using Layer = Gpt2Layer<WeightsType>;
  // What one layer keeps: the input of every operator whose gradient needs it.
  struct Kept {
    Values x, ln_1, qkv, probabilities, mixed, middle, ln_2, inner, act;
  };

  void allocate(const ModelConfig& config, const TrainOptions& options) {
    constexpr std::int64_t kAlignment = 64;  // values: 256 bytes
    const auto aligned = [](std::int64_t values) { return (values + kAlignment - 1) / kAlignment * kAlignment; };
    const std::int64_t rows = options.batch * options.tokens;
    const std::int64_t stream = aligned(rows * config.hidden), qkv = aligned(3 * rows * config.hidden);
    const std::int64_t inner = aligned(rows * config.intermediate), logits = aligned(rows * config.vocab);
    const std::int64_t squares = aligned(rows * config.heads * options.tokens);
    memory_ =
        run_.allocate(config.layers * (5 * stream + qkv + 2 * inner + squares) + 4 * stream + logits + inner + qkv);
    Values next = Engine::address(memory_);
    const auto take = [&](std::int64_t values) { return std::exchange(next, Engine::at(next, values)); };
    for (std::int64_t layer = 0; layer < config.layers; ++layer) {
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
    last_ = take(stream), normed_ = take(stream), logits_ = take(logits);
    dx_ = take(stream), dnormed_ = take(stream), dinner_ = take(inner), dqkv_ = take(qkv);
  }

  void forward_attention(const Layer& layer, const Kept& kept) {
    within(layer.names.ln_1, [&] { run_.normalise(layer.ln_1, kept.x, kept.ln_1); });
    within(layer.names.attn, [&] {
      within(layer.names.c_attn, [&] { run_.project(layer.c_attn, kept.ln_1, Store::kReplace, kept.qkv); });
      within(layer.names.core, [&] { run_.attend_forward(kept.qkv, kept.probabilities, kept.mixed); });
      within(layer.names.c_proj, [&] {
        run_.copy_stream(kept.x, kept.middle);
        run_.project(layer.c_proj, kept.mixed, Store::kAccumulate, kept.middle);
      });
    });
  }

  void forward_mlp(const Layer& layer, const Kept& kept, Values out) {
    within(layer.names.ln_2, [&] { run_.normalise(layer.ln_2, kept.middle, kept.ln_2); });
    within(layer.names.mlp, [&] {
      within(layer.names.mlp_c_fc, [&] { run_.project(layer.mlp_c_fc, kept.ln_2, Store::kReplace, kept.inner); });
      within(layer.names.act, [&] { run_.gelu(kept.inner, kept.act); });
      within(layer.names.mlp_c_proj, [&] {
        run_.copy_stream(kept.middle, out);
        run_.project(layer.mlp_c_proj, kept.act, Store::kAccumulate, out);
      });
    });
  }

  void backward_mlp(const Layer& layer, const Kept& kept) {
    within(layer.names.mlp, [&] {
      within(layer.names.mlp_c_proj, [&] { back_through(layer.mlp_c_proj, kept.act, dx_, dinner_); });
      within(layer.names.act, [&] { run_.gelu_backward(kept.inner, dinner_); });
      within(layer.names.mlp_c_fc, [&] { back_through(layer.mlp_c_fc, kept.ln_2, dinner_, dnormed_); });
    });
    within(layer.names.ln_2, [&] { back_through(layer.ln_2, kept.middle, dnormed_, dx_); });
  }

  void backward_attention(const Layer& layer, const Kept& kept) {
    within(layer.names.attn, [&] {
      within(layer.names.c_proj, [&] { back_through(layer.c_proj, kept.mixed, dx_, dnormed_); });
      within(layer.names.core, [&] { run_.attend_backward(kept.qkv, kept.probabilities, dnormed_, dqkv_); });
      within(layer.names.c_attn, [&] { back_through(layer.c_attn, kept.ln_1, dqkv_, dnormed_); });
    });
    within(layer.names.ln_1, [&] { back_through(layer.ln_1, kept.x, dnormed_, dx_); });
  }

  template <class Part>  // a linear layer or a norm
  void back_through(const Part& part, Values x, Values dy, Values dx) {
    run_.backward(part, x, dy, {gradient_of(part.weight), gradient_of(part.bias)}, dx);
  }

  // The tensors whose names begin with `prefix`.
  void update_tensors(std::string_view prefix) {
    for (const TensorSpec& spec : weights_.specs()) {
      if (!spec.name.starts_with(prefix)) continue;
      const Values parameter = weights_.tensor(spec.name);
      run_.adamw(adamw_step(optimizer_, step_, spec.kind == TensorSpec::Kind::kMatrix), gradient_of(parameter),
                 spec.count(), parameter, first_.tensor(spec.name), second_.tensor(spec.name));
    }
  }

  // The gradient of a parameter has the parameter's place in its own block.
  template <class Address>
  Values gradient_of(Address parameter) {
    return parameter == Address{} ? Values{} : gradients_.data() + (parameter - weights_.data());
  }

  Engine run_;
  AdamWOptions optimizer_;
  std::int64_t step_ = 0;
  WeightsType weights_, gradients_, first_, second_;  // the two moments of AdamW begin with 0
  std::vector<Layer> layers_;
  typename WeightsType::NormType ln_f_;
  typename WeightsType::LinearType head_;  // the embedding table, in its second use
  ModuleNames names_;
  llmprof_name embed_name_, ln_f_name_, head_name_, loss_name_;
  typename Engine::Memory memory_;  // of all that follows
  std::vector<Kept> kept_;
  Values last_, normed_;  // (B, T, C): the residual stream behind the last layer; that, normalised
  Values logits_;         // (B, T, V): logits, then probabilities, then their gradients
  Values dx_, dnormed_, dinner_,
      dqkv_;  // gradients of the residual stream, of what a norm gave, of an MLP's inside, of qkv
};

// The operators of training on the CPU.
class CpuTraining {
 public:
  using WeightsType = Weights;
  using Values = float*;
  using Memory = FloatBuffer;

  CpuTraining(const ModelConfig& config, const TrainOptions& options, ThreadPool& pool);
  Weights zeros() const { return Weights(config_); }  // fresh memory is 0
  static FloatBuffer allocate(std::int64_t values) { return FloatBuffer(values); }
  static float* address(FloatBuffer& memory) { return memory.data(); }
  static float* at(float* base, std::int64_t values) { return base + values; }

  void set_batch(std::span<const Token> inputs, std::span<const Token> targets);
  void embed(const float* table, const float* positions, float* out);
  void normalise(const Norm& norm, const float* x, float* out);
  void project(const Linear& linear, const float* x, Store store, float* y) {
    apply(linear, x, rows_, store, y, pool_);
  }
  void gelu(const float* x, float* out);
  void attend_forward(const float* qkv, float* probabilities, float* out) {
    workload::attend_forward(attention_of(qkv, probabilities), out);
  }
  double cross_entropy(float* logits) { return workload::cross_entropy(targets_, config_.vocab, logits, pool_); }
  void copy_stream(const float* from, float* to);
  void clear_stream(float* to);

  void backward(const Linear& linear, const float* x, const float* dy, const LinearGradient& gradient, float* dx) {
    linear_backward(linear, x, dy, rows_, gradient, dx, pool_);
  }
  void backward(const Norm& norm, const float* x, const float* dy, const NormGradient& gradient, float* dx) {
    const NormInput input{x, rows_, config_.hidden, static_cast<float>(config_.norm_epsilon)};
    layer_norm_backward(norm, input, dy, gradient, dx, pool_);
  }
  void gelu_backward(const float* x, float* dy) { workload::gelu_backward(x, dy, rows_ * config_.intermediate, pool_); }
  void attend_backward(const float* qkv, float* probabilities, const float* dout, float* dqkv) {
    workload::attend_backward(attention_of(qkv, probabilities), dout, dprobabilities_, dqkv);
  }
  void cross_entropy_backward(float* logits) {
    workload::cross_entropy_backward(targets_, config_.vocab, logits, pool_);
  }
  void embedding_backward(const float* dx, float* table, float* positions) {
    workload::embedding_backward(inputs_, batch_, config_.hidden, dx, {table, positions}, pool_);
  }
  void adamw(const AdamWStep& step, const float* gradient, std::int64_t count, float* parameter, float* first,
             float* second) {
    adamw_update(step, gradient, count, parameter, first, second, pool_);
  }
  Result<void> finish() const { return {}; }  // nothing on a CPU fails

 private:
  CausalAttention attention_of(const float* qkv, float* probabilities) const;

  ModelConfig config_;
  std::int64_t batch_, tokens_, rows_;
  ThreadPool& pool_;
  std::vector<Token> inputs_, targets_;  // (B, T)
  FloatBuffer dprobabilities_;
};

using Trainer = Gpt2Trainer<CpuTraining>;

}  // namespace llmprof::workload
