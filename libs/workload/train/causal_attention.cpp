#include "workload/train/causal_attention.h"

#include <cblas.h>

#include <algorithm>
#include <cmath>

#include "workload/kernels.h"

namespace llmprof::workload {
namespace {

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

}  // namespace

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

}  // namespace llmprof::workload
