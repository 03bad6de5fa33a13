#include "workload/train/gradients.h"

#include <cblas.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "workload/kernels.h"

namespace llmprof::workload {
namespace {

// So many rows of n values that waking a thread is worth it.
std::int64_t worthwhile_rows(std::int64_t n) { return std::max<std::int64_t>(1, (1 << 15) / n); }

// So many columns: a cache line of floats at least, so that threads do not share one.
std::int64_t worthwhile_columns(std::int64_t rows) { return std::max<std::int64_t>(16, (1 << 15) / rows); }

// out[column] = sum over rows of y (rows, columns)
void sum_rows(const float* y, std::int64_t rows, std::int64_t columns, float* out, ThreadPool& pool) {
  pool.parallel_for(columns, worthwhile_columns(rows), [&](std::int64_t begin, std::int64_t end) {
    std::fill(out + begin, out + end, 0.0F);
    for (std::int64_t row = 0; row < rows; ++row) kernels().add(out + begin, y + row * columns + begin, end - begin);
  });
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
  if (gradient.bias != nullptr) sum_rows(dy, rows, linear.out, gradient.bias, pool);
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

void gelu_backward(const float* x, float* dy, std::int64_t count, ThreadPool& pool) {
  pool.parallel_for(count, 1 << 14, [&](std::int64_t begin, std::int64_t end) {
    kernels().gelu_backward(x + begin, dy + begin, end - begin);
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

}  // namespace llmprof::workload
