#include "workload/train/operators.h"

#include <cblas.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "workload/kernels.h"

namespace llmprof::workload {

namespace {

// So many columns: a cache line of floats at least, so that threads do not share one.
std::int64_t worthwhile_columns(std::int64_t rows) { return std::max<std::int64_t>(16, (1 << 15) / rows); }

// out[column] = sum over rows of y (rows, columns)
void sum_rows(const float* y, std::int64_t rows, std::int64_t columns, float* out, ThreadPool& pool) {
  pool.parallel_for(columns, worthwhile_columns(rows), [&](std::int64_t begin, std::int64_t end) {
    std::fill(out + begin, out + end, 0.0F);
    for (std::int64_t row = 0; row < rows; ++row) kernels().add(out + begin, y + row * columns + begin, end - begin);
  });
}

struct Matrix {
  const float* data;
  std::int64_t stride;
  CBLAS_TRANSPOSE transpose = CblasNoTrans;
};

// out (m, n) = a (m, k) · b (k, n)
struct Product {
  std::int64_t m, n, k;
  Matrix a, b;
  float* out;
  std::int64_t out_stride;
};

void multiply(const Product& p) {
  cblas_sgemm(CblasRowMajor, p.a.transpose, p.b.transpose, static_cast<blasint>(p.m), static_cast<blasint>(p.n),
              static_cast<blasint>(p.k), 1.0F, p.a.data, static_cast<blasint>(p.a.stride), p.b.data,
              static_cast<blasint>(p.b.stride), 0.0F, p.out, static_cast<blasint>(p.out_stride));
}

float scale(const CausalAttention& a) { return 1.0F / std::sqrt(static_cast<float>(a.head_dim)); }

// Where a head of a sequence stands in the tensors.
struct Place {
  std::int64_t q, k, v;  // in qkv and its gradient, rows every 3·width
  std::int64_t out;      // rows every width
  std::int64_t square;   // (T, T)
};

template <class Body>
void for_each_head(const CausalAttention& a, Body&& body) {
  for (std::int64_t sequence = 0; sequence < a.batch; ++sequence) {
    for (std::int64_t head = 0; head < a.heads; ++head) {
      const std::int64_t q = sequence * a.tokens * 3 * a.width() + head * a.head_dim;
      body(Place{.q = q,
                 .k = q + a.width(),
                 .v = q + 2 * a.width(),
                 .out = sequence * a.tokens * a.width() + head * a.head_dim,
                 .square = (sequence * a.heads + head) * a.tokens * a.tokens});
    }
  }
}

// Calls body(row of the square, tokens it sees) for every row, and sets what it does not see to 0.
template <class Body>
void for_each_row(const CausalAttention& a, float* squares, Body&& body) {
  const std::int64_t min_rows = std::max<std::int64_t>(1, (1 << 14) / a.tokens);
  a.pool.parallel_for(a.batch * a.heads * a.tokens, min_rows, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t visible = row % a.tokens + 1;
      body(row * a.tokens, visible);
      std::fill(squares + row * a.tokens + visible, squares + (row + 1) * a.tokens, 0.0F);
    }
  });
}

float correction(double beta, std::int64_t step) {
  return static_cast<float>(1 / (1 - std::pow(beta, static_cast<double>(step))));
}

}  // namespace

void linear_backward(const Linear& linear, const float* x, const float* dy, std::int64_t rows,
                     const LinearGradient& gradient, float* dx, ThreadPool& pool) {
  const auto count = static_cast<blasint>(rows);
  const auto in = static_cast<blasint>(linear.in);
  const auto out = static_cast<blasint>(linear.out);
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, count, in, out, 1.0F, dy, out, linear.weight, in, 0.0F, dx,
              in);
  cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, out, in, count, 1.0F, dy, out, x, in, 0.0F, gradient.weight, in);
  if (gradient.bias != nullptr) {
    sum_rows(dy, rows, linear.out, gradient.bias, pool);
  }
}

void gelu_backward(const float* x, float* dy, std::int64_t count, ThreadPool& pool) {
  pool.parallel_for(count, 1 << 14, [&](std::int64_t begin, std::int64_t end) {
    kernels().gelu_backward(x + begin, dy + begin, end - begin);
  });
}

double cross_entropy(std::span<const Token> targets, std::int64_t vocab, float* logits, ThreadPool& pool) {
  const std::int64_t rows = std::ssize(targets);
  std::vector<double> losses(targets.size());
  pool.parallel_for(rows, worthwhile_rows(vocab), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      float* const p = logits + row * vocab;
      kernels().softmax(p, 1.0F, vocab);
      losses[static_cast<std::size_t>(row)] = -std::log(static_cast<double>(p[targets[static_cast<std::size_t>(row)]]));
    }
  });
  double sum = 0;
  for (const double loss : losses) sum += loss;
  return sum / static_cast<double>(rows);
}

void cross_entropy_backward(std::span<const Token> targets, std::int64_t vocab, float* probabilities,
                            ThreadPool& pool) {
  const std::int64_t rows = std::ssize(targets);
  const float share = 1.0F / static_cast<float>(rows);
  pool.parallel_for(rows, worthwhile_rows(vocab), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      float* const p = probabilities + row * vocab;
      kernels().multiply(p, share, vocab);
      p[targets[static_cast<std::size_t>(row)]] -= share;
    }
  });
}

void attend_forward(const CausalAttention& a, float* out) {
  const std::int64_t t = a.tokens;
  const std::int64_t row = 3 * a.width();
  for_each_head(a, [&](const Place& at) {  // P = Q Kᵀ
    multiply({t, t, a.head_dim, {a.qkv + at.q, row}, {a.qkv + at.k, row, CblasTrans}, a.probabilities + at.square, t});
  });
  for_each_row(a, a.probabilities, [&](std::int64_t at, std::int64_t visible) {
    kernels().softmax(a.probabilities + at, scale(a), visible);
  });
  for_each_head(a, [&](const Place& at) {  // out = P V
    multiply({t, a.head_dim, t, {a.probabilities + at.square, t}, {a.qkv + at.v, row}, out + at.out, a.width()});
  });
}

void attend_backward(const CausalAttention& a, const float* dout, FloatBuffer& scratch, float* dqkv) {
  const std::int64_t t = a.tokens;
  const std::int64_t d = a.head_dim;
  const std::int64_t row = 3 * a.width();
  float* const dp = scratch.reserve(a.squares());
  for_each_head(a, [&](const Place& at) {
    const Matrix dy{dout + at.out, a.width()};
    multiply({t, d, t, {a.probabilities + at.square, t, CblasTrans}, dy, dqkv + at.v, row});  // dV = Pᵀ dout
    multiply({t, t, d, dy, {a.qkv + at.v, row, CblasTrans}, dp + at.square, t});              // dP = dout Vᵀ
  });
  for_each_row(a, dp, [&](std::int64_t at, std::int64_t visible) {  // dP becomes the gradient of Q Kᵀ
    kernels().softmax_backward(a.probabilities + at, dp + at, scale(a), visible);
  });
  for_each_head(a, [&](const Place& at) {
    multiply({t, d, t, {dp + at.square, t}, {a.qkv + at.k, row}, dqkv + at.q, row});              // dQ = dS K
    multiply({t, d, t, {dp + at.square, t, CblasTrans}, {a.qkv + at.q, row}, dqkv + at.k, row});  // dK = dSᵀ Q
  });
}

AdamWStep adamw_step(const AdamWOptions& options, std::int64_t step, bool decays) {
  return {.learning_rate = static_cast<float>(options.learning_rate),
          .beta1 = static_cast<float>(options.beta1),
          .beta2 = static_cast<float>(options.beta2),
          .epsilon = static_cast<float>(options.epsilon),
          .weight_decay = decays ? static_cast<float>(options.weight_decay) : 0.0F,
          .correction1 = correction(options.beta1, step),
          .correction2 = correction(options.beta2, step)};
}

void adamw_update(const AdamWStep& step, const float* gradients, std::int64_t count, float* parameters, float* first,
                  float* second, ThreadPool& pool) {
  pool.parallel_for(count, 1 << 14, [&](std::int64_t begin, std::int64_t end) {
    kernels().adamw(step, gradients + begin, end - begin, parameters + begin, first + begin, second + begin);
  });
}

void layer_norm_backward(const Norm& norm, const NormInput& input, const float* dy, const NormGradient& gradient,
                         float* dx, ThreadPool& pool) {
  const std::int64_t n = input.columns;
  std::vector<RowStatistics> statistics(static_cast<std::size_t>(input.rows));
  pool.parallel_for(input.rows, worthwhile_rows(n), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      statistics[static_cast<std::size_t>(row)] =
          kernels().layer_norm_backward(input.x + row * n, norm.weight, dy + row * n, input.epsilon, n, dx + row * n);
    }
  });
  pool.parallel_for(n, worthwhile_columns(input.rows), [&](std::int64_t begin, std::int64_t end) {
    std::fill(gradient.weight + begin, gradient.weight + end, 0.0F);
    std::fill(gradient.bias + begin, gradient.bias + end, 0.0F);
    for (std::int64_t row = 0; row < input.rows; ++row) {
      kernels().layer_norm_gradients(input.x + row * n + begin, dy + row * n + begin,
                                     statistics[static_cast<std::size_t>(row)], end - begin, gradient.weight + begin,
                                     gradient.bias + begin);
    }
  });
}

void embedding_backward(std::span<const Token> tokens, std::int64_t batch, std::int64_t columns, const float* dx,
                        const EmbeddingGradient& gradient, ThreadPool& pool) {
  const std::int64_t rows = std::ssize(tokens);
  const std::int64_t length = rows / batch;
  pool.parallel_for(columns, worthwhile_columns(rows), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = 0; row < rows; ++row) {
      const float* const from = dx + row * columns + begin;
      kernels().add(gradient.token_table + tokens[static_cast<std::size_t>(row)] * columns + begin, from, end - begin);
      float* const position = gradient.position_table + row % length * columns + begin;
      if (row < length) {
        std::copy_n(from, end - begin, position);
      } else {
        kernels().add(position, from, end - begin);
      }
    }
  });
}

}  // namespace llmprof::workload
