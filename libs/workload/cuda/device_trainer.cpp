#include "workload/cuda/device_trainer.h"

#include <cmath>
#include <numeric>
#include <vector>

namespace llmprof::workload::cuda {
namespace {

// Sums over rows: blocks of 32 columns and 8 groups of rows.
Launch over_columns(std::int64_t columns) { return {.grid_x = (columns + 31) / 32, .block_x = 32, .block_y = 8}; }

Matrix rows_of(Pointer data, std::int64_t stride, bool transposed = false) {
  return {.data = data, .stride = stride, .transposed = transposed};
}

Matrix flipped(Matrix matrix) {
  matrix.transposed = true;
  return matrix;
}

}  // namespace

DeviceTraining::DeviceTraining(const ModelConfig& config, const TrainOptions& options, Device& device)
    : Operators(device, ElementType::kFloat32),
      config_(config),
      batch_(options.batch),
      tokens_(options.tokens),
      rows_(batch_ * tokens_),
      inputs_(device, (1 + rows_) * static_cast<std::int64_t>(sizeof(Token))),
      targets_(device, rows_ * static_cast<std::int64_t>(sizeof(Token))),
      losses_(device, rows_ * static_cast<std::int64_t>(sizeof(double))),
      dprobabilities_(allocate(rows_ * config.heads * tokens_)),
      moments_(allocate(rows_ * 2)) {}

void DeviceTraining::set_batch(std::span<const Token> inputs, std::span<const Token> targets) {
  const auto bytes = static_cast<std::int64_t>(inputs.size_bytes());
  device().clear(inputs_.pointer(), sizeof(Token));
  device().copy_in(inputs_.pointer() + sizeof(Token), inputs.data(), bytes);
  device().copy_in(targets_.pointer(), targets.data(), bytes);
}

Result<double> DeviceTraining::cross_entropy(Pointer logits) const {
  device().launch("cross_entropy", over_rows(rows_, config_.vocab),
                  {logits, targets_.pointer(), config_.vocab, losses_.pointer()});
  std::vector<double> losses(static_cast<std::size_t>(rows_));
  device().copy_out(losses.data(), losses_.pointer(), rows_ * static_cast<std::int64_t>(sizeof(double)));
  LLMPROF_TRY(device().status());
  return std::accumulate(losses.begin(), losses.end(), 0.0) / static_cast<double>(rows_);
}

void DeviceTraining::cross_entropy_backward(Pointer logits) const {
  device().launch("cross_entropy_backward", over_rows(rows_, config_.vocab),
                  {logits, targets_.pointer(), config_.vocab, 1.0F / static_cast<float>(rows_)});
}

void DeviceTraining::backward(const DeviceLinear& linear, Pointer x, Pointer dy, const Gradient& gradient,
                              Pointer dx) const {
  device().multiply({.m = rows_,
                     .n = linear.in,
                     .k = linear.out,
                     .a = rows_of(dy, linear.out),
                     .b = rows_of(linear.weight, linear.in),
                     .out = rows_of(dx, linear.in)});
  device().multiply({.m = linear.out,
                     .n = linear.in,
                     .k = rows_,
                     .a = rows_of(dy, linear.out, true),
                     .b = rows_of(x, linear.in),
                     .out = rows_of(gradient.weight, linear.in)});
  if (gradient.bias != 0)
    device().launch("column_sums", over_columns(linear.out), {dy, rows_, linear.out, gradient.bias});
}

void DeviceTraining::backward(const DeviceNorm& norm, Pointer x, Pointer dy, const Gradient& gradient,
                              Pointer dx) const {
  const std::int64_t n = config_.hidden;
  device().launch("layer_norm_backward", over_rows(rows_, n),
                  {x, norm.weight, dy, static_cast<float>(config_.norm_epsilon), n, dx, moments_.pointer()});
  device().launch("layer_norm_gradients", over_columns(n),
                  {x, dy, moments_.pointer(), rows_, n, gradient.weight, gradient.bias});
}

void DeviceTraining::gelu_backward(Pointer x, Pointer dy) const {
  const std::int64_t count = rows_ * config_.intermediate;
  device().launch("gelu_backward", over_elements(count), {x, count, dy});
}

void DeviceTraining::embedding_backward(Pointer dx, Pointer table, Pointer positions) const {
  const std::int64_t n = config_.hidden;
  const Pointer tokens = inputs_.pointer() + sizeof(Token);
  device().launch("embedding_backward", over_rows(rows_, n), {tokens, rows_, n, dx, table});
  device().launch("position_backward", over_rows(tokens_, n), {batch_, n, dx, positions});
}

void DeviceTraining::adamw(const AdamWStep& s, Pointer gradient, std::int64_t count, Pointer parameter, Pointer first,
                           Pointer second) const {
  device().launch("adamw", over_elements(count),
                  {gradient, s.learning_rate, s.beta1, s.beta2, s.epsilon, s.weight_decay, s.correction1, s.correction2,
                   count, parameter, first, second});
}

// Where the heads of a sequence stand. q, k, v: rows every 3·width, a head every head_dim.
struct DeviceTraining::Heads {
  Matrix q, k, v, out, square;
};

// The heads of one sequence in (B, T, 3, H, D), (B, T, H, D) and (B, H, T, T).
DeviceTraining::Heads DeviceTraining::heads_of(std::int64_t sequence, Pointer qkv, Pointer out, Pointer squares) const {
  const std::int64_t dim = config_.head_dim, width = config_.heads * dim, square = tokens_ * tokens_;
  const auto part = [&](std::int64_t which) {
    return Matrix{.data = at(qkv, (sequence * tokens_ * 3 + which) * width), .stride = 3 * width, .batch_stride = dim};
  };
  return {
      .q = part(0),
      .k = part(1),
      .v = part(2),
      .out = {.data = at(out, sequence * tokens_ * width), .stride = width, .batch_stride = dim},
      .square = {.data = at(squares, sequence * config_.heads * square), .stride = tokens_, .batch_stride = square}};
}

void DeviceTraining::of_heads(std::int64_t n, std::int64_t k, const Matrix& left, const Matrix& right,
                              const Matrix& out) const {
  device().multiply({.m = tokens_, .n = n, .k = k, .batch = config_.heads, .a = left, .b = right, .out = out});
}

float DeviceTraining::scale() const { return 1.0F / std::sqrt(static_cast<float>(config_.head_dim)); }

void DeviceTraining::attend_forward(Pointer qkv, Pointer probabilities, Pointer out) const {
  for (std::int64_t sequence = 0; sequence < batch_; ++sequence) {  // P = Q Kᵀ
    const Heads heads = heads_of(sequence, qkv, out, probabilities);
    of_heads(tokens_, config_.head_dim, heads.q, flipped(heads.k), heads.square);
  }
  device().launch("causal_softmax", over_rows(rows_ * config_.heads, tokens_), {probabilities, tokens_, scale()});
  for (std::int64_t sequence = 0; sequence < batch_; ++sequence) {  // out = P V
    const Heads heads = heads_of(sequence, qkv, out, probabilities);
    of_heads(config_.head_dim, tokens_, heads.square, heads.v, heads.out);
  }
}

void DeviceTraining::attend_backward(Pointer qkv, Pointer probabilities, Pointer dout, Pointer dqkv) const {
  const Pointer scratch = dprobabilities_.pointer();
  for (std::int64_t sequence = 0; sequence < batch_; ++sequence) {
    const Heads heads = heads_of(sequence, qkv, dout, probabilities), d = heads_of(sequence, dqkv, dout, scratch);
    of_heads(config_.head_dim, tokens_, flipped(heads.square), d.out, d.v);  // dV = Pᵀ dout
    of_heads(tokens_, config_.head_dim, d.out, flipped(heads.v), d.square);  // dP = dout Vᵀ
  }
  device().launch("causal_softmax_backward", over_rows(rows_ * config_.heads, tokens_),
                  {probabilities, scratch, tokens_, scale()});
  for (std::int64_t sequence = 0; sequence < batch_; ++sequence) {
    const Heads heads = heads_of(sequence, qkv, dout, probabilities), d = heads_of(sequence, dqkv, dout, scratch);
    of_heads(config_.head_dim, tokens_, d.square, heads.k, d.q);           // dQ = dS K
    of_heads(config_.head_dim, tokens_, flipped(d.square), heads.q, d.k);  // dK = dSᵀ Q
  }
}

}  // namespace llmprof::workload::cuda
