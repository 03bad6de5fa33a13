#include "workload/testing/reference.h"

#include <cmath>

namespace llmprof::workload {
namespace {

using Vector = std::vector<double>;
using Matrix = std::vector<Vector>;  // [position][channel]

constexpr double kPi = 3.14159265358979323846;

// y = W x (+ b)
Vector matvec(const float* w, const float* b, const Vector& x, int out) {
  const int in = static_cast<int>(x.size());
  Vector y(out);
  for (int o = 0; o < out; ++o) {
    double sum = b != nullptr ? b[o] : 0.0;
    for (int i = 0; i < in; ++i) sum += static_cast<double>(w[static_cast<long>(o) * in + i]) * x[i];
    y[o] = sum;
  }
  return y;
}

Vector layer_norm(const Vector& x, const float* gain, const float* shift, double epsilon) {
  double mean = 0;
  for (double v : x) mean += v;
  mean /= static_cast<double>(x.size());
  double variance = 0;
  for (double v : x) variance += (v - mean) * (v - mean);
  variance /= static_cast<double>(x.size());
  Vector y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) y[i] = (x[i] - mean) / std::sqrt(variance + epsilon) * gain[i] + shift[i];
  return y;
}

Vector rms_norm(const Vector& x, const float* gain, double epsilon) {
  double mean_square = 0;
  for (double v : x) mean_square += v * v;
  mean_square /= static_cast<double>(x.size());
  Vector y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) y[i] = x[i] / std::sqrt(mean_square + epsilon) * gain[i];
  return y;
}

void add_to(Vector& x, const Vector& y) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
}

// One head of one token: values weighted by softmax(q·k/√d) over the tokens up to it.
// q is the head's slice; keys and values are whole rows, of which the slice at `offset` belongs to this head.
Vector attend(const Vector& q, const Matrix& keys, const Matrix& values, int offset, int upto) {
  const int dim = static_cast<int>(q.size());
  Vector weight(upto + 1);
  double total = 0;
  for (int t = 0; t <= upto; ++t) {
    double score = 0;
    for (int d = 0; d < dim; ++d) score += q[d] * keys[t][offset + d];
    weight[t] = std::exp(score / std::sqrt(static_cast<double>(dim)));  // scores are small here: no overflow
    total += weight[t];
  }
  Vector out(dim, 0.0);
  for (int t = 0; t <= upto; ++t) {
    for (int d = 0; d < dim; ++d) out[d] += weight[t] / total * values[t][offset + d];
  }
  return out;
}

Vector slice(const Vector& x, int begin, int count) { return Vector(x.begin() + begin, x.begin() + begin + count); }

Matrix attend_all_heads(const Matrix& q, const Matrix& k, const Matrix& v, int heads, int kv_heads, int dim) {
  Matrix out(q.size());
  for (int t = 0; t < static_cast<int>(q.size()); ++t) {
    for (int h = 0; h < heads; ++h) {
      const int shared = h / (heads / kv_heads);
      const Vector mixed = attend(slice(q[t], h * dim, dim), k, v, shared * dim, t);
      out[t].insert(out[t].end(), mixed.begin(), mixed.end());
    }
  }
  return out;
}

double gelu(double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / kPi) * (x + 0.044715 * x * x * x))); }

double silu(double x) { return x / (1 + std::exp(-x)); }

// x·cos + rotate_half(x)·sin, where rotate_half((a, b)) = (-b, a), for every head in the row
Vector rotary(const Vector& x, int position, int dim, double theta) {
  Vector y(x.size());
  for (int base = 0; base < static_cast<int>(x.size()); base += dim) {
    for (int d = 0; d < dim; ++d) {
      const int pair = d % (dim / 2);
      const double angle = position / std::pow(theta, 2.0 * pair / dim);
      const double turned = d < dim / 2 ? -x[base + d + dim / 2] : x[base + d - dim / 2];
      y[base + d] = x[base + d] * std::cos(angle) + turned * std::sin(angle);
    }
  }
  return y;
}

Matrix gpt2(const ModelConfig& c, const ParameterLookup& p, std::span<const int> tokens) {
  const int width = static_cast<int>(c.hidden);
  Matrix x(tokens.size(), Vector(width));
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    for (int i = 0; i < width; ++i) {
      x[t][i] = static_cast<double>(p("wte.weight")[tokens[t] * width + i]) + p("wpe.weight")[t * width + i];
    }
  }
  for (int layer = 0; layer < c.layers; ++layer) {
    const std::string h = "h." + std::to_string(layer) + ".";
    Matrix q, k, v;
    for (const Vector& row : x) {
      const Vector normed = layer_norm(row, p(h + "ln_1.weight"), p(h + "ln_1.bias"), c.norm_epsilon);
      const Vector qkv = matvec(p(h + "attn.c_attn.weight"), p(h + "attn.c_attn.bias"), normed, 3 * width);
      q.push_back(slice(qkv, 0, width));
      k.push_back(slice(qkv, width, width));
      v.push_back(slice(qkv, 2 * width, width));
    }
    const int heads = static_cast<int>(c.heads);
    const Matrix mixed = attend_all_heads(q, k, v, heads, heads, width / heads);
    for (std::size_t t = 0; t < x.size(); ++t) {
      add_to(x[t], matvec(p(h + "attn.c_proj.weight"), p(h + "attn.c_proj.bias"), mixed[t], width));
      const Vector normed = layer_norm(x[t], p(h + "ln_2.weight"), p(h + "ln_2.bias"), c.norm_epsilon);
      Vector inner = matvec(p(h + "mlp.c_fc.weight"), p(h + "mlp.c_fc.bias"), normed, static_cast<int>(c.intermediate));
      for (double& value : inner) value = gelu(value);
      add_to(x[t], matvec(p(h + "mlp.c_proj.weight"), p(h + "mlp.c_proj.bias"), inner, width));
    }
  }
  for (Vector& row : x) {
    const Vector normed = layer_norm(row, p("ln_f.weight"), p("ln_f.bias"), c.norm_epsilon);
    row = matvec(p("wte.weight"), nullptr, normed, static_cast<int>(c.vocab));
  }
  return x;
}

Matrix llama(const ModelConfig& c, const ParameterLookup& p, std::span<const int> tokens) {
  const int width = static_cast<int>(c.hidden);
  const int dim = static_cast<int>(c.head_dim);
  const int heads = static_cast<int>(c.heads);
  const int kv_heads = static_cast<int>(c.kv_heads);
  const int inner_width = static_cast<int>(c.intermediate);
  Matrix x(tokens.size(), Vector(width));
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    for (int i = 0; i < width; ++i) x[t][i] = p("embed_tokens.weight")[tokens[t] * width + i];
  }
  for (int layer = 0; layer < c.layers; ++layer) {
    const std::string l = "layers." + std::to_string(layer) + ".";
    Matrix q, k, v;
    for (int t = 0; t < static_cast<int>(x.size()); ++t) {
      const Vector normed = rms_norm(x[t], p(l + "input_layernorm.weight"), c.norm_epsilon);
      q.push_back(rotary(matvec(p(l + "self_attn.q_proj.weight"), nullptr, normed, heads * dim), t, dim, c.rope_theta));
      k.push_back(
          rotary(matvec(p(l + "self_attn.k_proj.weight"), nullptr, normed, kv_heads * dim), t, dim, c.rope_theta));
      v.push_back(matvec(p(l + "self_attn.v_proj.weight"), nullptr, normed, kv_heads * dim));
    }
    const Matrix mixed = attend_all_heads(q, k, v, heads, kv_heads, dim);
    for (std::size_t t = 0; t < x.size(); ++t) {
      add_to(x[t], matvec(p(l + "self_attn.o_proj.weight"), nullptr, mixed[t], width));
      const Vector normed = rms_norm(x[t], p(l + "post_attention_layernorm.weight"), c.norm_epsilon);
      Vector gate = matvec(p(l + "mlp.gate_proj.weight"), nullptr, normed, inner_width);
      const Vector up = matvec(p(l + "mlp.up_proj.weight"), nullptr, normed, inner_width);
      for (int i = 0; i < inner_width; ++i) gate[i] = silu(gate[i]) * up[i];
      add_to(x[t], matvec(p(l + "mlp.down_proj.weight"), nullptr, gate, width));
    }
  }
  const float* const head = p(c.tied_embeddings ? "embed_tokens.weight" : "lm_head.weight");
  for (Vector& row : x) {
    row = matvec(head, nullptr, rms_norm(row, p("norm.weight"), c.norm_epsilon), static_cast<int>(c.vocab));
  }
  return x;
}

}  // namespace

Matrix reference_logits(const ModelConfig& config, const ParameterLookup& parameter, std::span<const int> tokens) {
  return config.family == Family::kGpt2 ? gpt2(config, parameter, tokens) : llama(config, parameter, tokens);
}

}  // namespace llmprof::workload
