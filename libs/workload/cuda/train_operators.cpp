#include "workload/cuda/train_operators.h"

#include <cmath>

namespace llmprof::workload::cuda {
namespace {

float scale(const DeviceCausalAttention& a) { return 1.0F / std::sqrt(static_cast<float>(a.head_dim)); }

// Sums over rows: blocks of 32 columns and 8 groups of rows.
Launch over_columns(std::int64_t columns) { return {.grid_x = (columns + 31) / 32, .block_x = 32, .block_y = 8}; }

Matrix rows_of(Pointer data, std::int64_t stride, bool transposed = false) {
  return {.data = data, .stride = stride, .transposed = transposed};
}

Matrix flipped(Matrix matrix) {
  matrix.transposed = true;
  return matrix;
}

// Where the heads of a sequence stand. q, k, v: rows every 3·width, a head every head_dim.
struct Heads {
  Matrix q, k, v, out, square;
};

}  // namespace

void TrainOperators::linear_backward(const DeviceLinear& linear, Pointer x, Pointer dy, std::int64_t rows,
                                     const DeviceLinear& gradient, Pointer dx) const {
  device().multiply({.m = rows,
                     .n = linear.in,
                     .k = linear.out,
                     .a = rows_of(dy, linear.out),
                     .b = rows_of(linear.weight, linear.in),
                     .out = rows_of(dx, linear.in)});
  device().multiply({.m = linear.out,
                     .n = linear.in,
                     .k = rows,
                     .a = rows_of(dy, linear.out, true),
                     .b = rows_of(x, linear.in),
                     .out = rows_of(gradient.weight, linear.in)});
  if (gradient.bias != 0) {
    device().launch("column_sums", over_columns(linear.out), {dy, rows, linear.out, gradient.bias});
  }
}

void TrainOperators::layer_norm_backward(const DeviceNorm& norm, const ModelConfig& config, Pointer x, Pointer dy,
                                         std::int64_t rows, const DeviceNorm& gradient, Pointer moments,
                                         Pointer dx) const {
  const std::int64_t n = config.hidden;
  device().launch("layer_norm_backward", over_rows(rows, n),
                  {x, norm.weight, dy, static_cast<float>(config.norm_epsilon), n, dx, moments});
  device().launch("layer_norm_gradients", over_columns(n), {x, dy, moments, rows, n, gradient.weight, gradient.bias});
}

void TrainOperators::gelu_backward(Pointer x, std::int64_t count, Pointer dy) const {
  device().launch("gelu_backward", over_elements(count), {x, count, dy});
}

void TrainOperators::embedding_backward(Pointer tokens, std::int64_t batch, std::int64_t length, std::int64_t columns,
                                        Pointer dx, Pointer token_table, Pointer position_table) const {
  const std::int64_t rows = batch * length;
  device().launch("embedding_backward", over_rows(rows, columns), {tokens, rows, columns, dx, token_table});
  device().launch("position_backward", over_rows(length, columns), {batch, columns, dx, position_table});
}

void TrainOperators::of_heads(const DeviceCausalAttention& a, std::int64_t n, std::int64_t k, const Matrix& left,
                              const Matrix& right, const Matrix& out) const {
  device().multiply({.m = a.tokens, .n = n, .k = k, .batch = a.heads, .a = left, .b = right, .out = out});
}

namespace {

// The heads of one sequence in (B, T, 3, H, D), (B, T, H, D) and (B, H, T, T).
Heads heads_of(const TrainOperators& run, const DeviceCausalAttention& a, std::int64_t sequence, Pointer qkv,
               Pointer out, Pointer squares) {
  const std::int64_t row = 3 * a.width(), square = a.tokens * a.tokens;
  const auto part = [&](std::int64_t which) {
    return Matrix{
        .data = run.at(qkv, sequence * a.tokens * row + which * a.width()), .stride = row, .batch_stride = a.head_dim};
  };
  return {
      .q = part(0),
      .k = part(1),
      .v = part(2),
      .out = {.data = run.at(out, sequence * a.tokens * a.width()), .stride = a.width(), .batch_stride = a.head_dim},
      .square = {.data = run.at(squares, sequence * a.heads * square), .stride = a.tokens, .batch_stride = square}};
}

}  // namespace

void TrainOperators::attend_forward(const DeviceCausalAttention& a, Pointer out) const {
  for (std::int64_t sequence = 0; sequence < a.batch; ++sequence) {  // P = Q Kᵀ
    const Heads at = heads_of(*this, a, sequence, a.qkv, out, a.probabilities);
    of_heads(a, a.tokens, a.head_dim, at.q, flipped(at.k), at.square);
  }
  device().launch("causal_softmax", over_rows(a.batch * a.heads * a.tokens, a.tokens),
                  {a.probabilities, a.tokens, scale(a)});
  for (std::int64_t sequence = 0; sequence < a.batch; ++sequence) {  // out = P V
    const Heads at = heads_of(*this, a, sequence, a.qkv, out, a.probabilities);
    of_heads(a, a.head_dim, a.tokens, at.square, at.v, at.out);
  }
}

void TrainOperators::attend_backward(const DeviceCausalAttention& a, Pointer dout, Pointer scratch,
                                     Pointer dqkv) const {
  for (std::int64_t sequence = 0; sequence < a.batch; ++sequence) {
    const Heads at = heads_of(*this, a, sequence, a.qkv, dout, a.probabilities);
    const Heads d = heads_of(*this, a, sequence, dqkv, dout, scratch);
    of_heads(a, a.head_dim, a.tokens, flipped(at.square), d.out, d.v);  // dV = Pᵀ dout
    of_heads(a, a.tokens, a.head_dim, d.out, flipped(at.v), d.square);  // dP = dout Vᵀ
  }
  device().launch("causal_softmax_backward", over_rows(a.batch * a.heads * a.tokens, a.tokens),
                  {a.probabilities, scratch, a.tokens, scale(a)});
  for (std::int64_t sequence = 0; sequence < a.batch; ++sequence) {
    const Heads at = heads_of(*this, a, sequence, a.qkv, dout, a.probabilities);
    const Heads d = heads_of(*this, a, sequence, dqkv, dout, scratch);
    of_heads(a, a.head_dim, a.tokens, d.square, at.k, d.q);           // dQ = dS K
    of_heads(a, a.head_dim, a.tokens, flipped(d.square), at.q, d.k);  // dK = dSᵀ Q
  }
}

void TrainOperators::cross_entropy(Pointer targets, std::int64_t rows, std::int64_t vocab, Pointer logits,
                                   Pointer losses) const {
  device().launch("cross_entropy", over_rows(rows, vocab), {logits, targets, vocab, losses});
}

void TrainOperators::cross_entropy_backward(Pointer targets, std::int64_t rows, std::int64_t vocab,
                                            Pointer probabilities) const {
  device().launch("cross_entropy_backward", over_rows(rows, vocab),
                  {probabilities, targets, vocab, 1.0F / static_cast<float>(rows)});
}

void TrainOperators::adamw(const AdamWStep& s, Pointer gradient, std::int64_t count, Pointer parameter, Pointer first,
                           Pointer second) const {
  device().launch("adamw", over_elements(count),
                  {gradient, s.learning_rate, s.beta1, s.beta2, s.epsilon, s.weight_decay, s.correction1, s.correction2,
                   count, parameter, first, second});
}

}  // namespace llmprof::workload::cuda
