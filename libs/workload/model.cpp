#include "workload/model.h"

#include <cblas.h>
#include <algorithm>
#include <cmath>
#include <utility>

#include "base/assert.h"
#include "workload/kernels.h"
#include "workload/layers.h"
#include "workload/linear.h"

namespace llmprof::workload {

// Computed in double: angles grow with the position.
void RotaryAngles::extend(const ModelConfig& config, std::int64_t positions) {
  const std::int64_t half = config.head_dim / 2;
  for (auto position = static_cast<std::int64_t>(cosine.size()) / half; position < positions; ++position) {
    for (std::int64_t i = 0; i < half; ++i) {
      const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(config.head_dim);
      const double angle = static_cast<double>(position) * std::pow(config.rope_theta, exponent);
      cosine.push_back(static_cast<float>(std::cos(angle)));
      sine.push_back(static_cast<float>(std::sin(angle)));
    }
  }
}

Model::Model(const ModelConfig& config, Weights weights, ThreadPool& pool, Ranks* ranks)
    : weights_(std::move(weights)), config_(config), pool_(pool), ranks_(ranks) {
  const OuterNames outer = outer_names(config.family);
  token_table_ = weights_.linear(outer.embedding).weight;
  position_table_ = outer.positions != nullptr ? weights_.linear(outer.positions).weight : nullptr;
  last_norm_ = weights_.norm(outer.norm);
  head_ = weights_.linear(config.tied_embeddings ? outer.embedding : "lm_head");
  embed_name_ = names_.add(outer.embedding);
  last_norm_name_ = names_.add(outer.norm);
  head_name_ = names_.add("lm_head");
  if (ranks == nullptr) return;
  head_.out /= ranks->count();
  head_.weight += ranks->rank() * head_.out * head_.in;
}

std::span<const float> Model::forward(std::span<const Token> tokens, KvCache& cache) {
  const auto count = static_cast<std::int64_t>(tokens.size());
  LLMPROF_ASSERT(count > 0 && count % cache.batch() == 0);
  const std::int64_t each = count / cache.batch();
  LLMPROF_ASSERT(cache.length() + each <= cache.capacity());
  together_.clear();
  for (std::int64_t i = 0; i < cache.batch(); ++i)
    together_.push_back({.row = i * each, .tokens = each, .position = cache.length(), .blocks = cache.block(i)});
  const std::span<const float> logits = forward(tokens, together_, cache);
  cache.advance(each);
  return logits;
}

std::span<const float> Model::forward(std::span<const Token> tokens, std::span<const NewTokens> sequences,
                                      KvBlocks& cache) {
  const auto count = static_cast<std::int64_t>(tokens.size());
  places_.clear();
  for (const NewTokens& sequence : sequences) {
    for (std::int64_t position = sequence.position; position < sequence.context(); ++position)
      places_.push_back(
          {position, sequence.blocks[position / cache.block_tokens()], position % cache.block_tokens()});
  }
  LLMPROF_ASSERT(count > 0 && count == std::ssize(places_));
  const Pass pass{tokens, sequences, places_, cache, residual_.reserve(count * config_.hidden)};
  normed_.reserve(count * config_.hidden);
  mixed_.reserve(count * config_.heads * config_.head_dim);
  within(embed_name_, [&] { embed(pass); });
  for (std::int64_t layer = 0; layer < config_.layers; ++layer) run_layer(pass, layer);
  return logits(pass);
}

void Model::embed(const Pass& pass) {
  if (position_table_ == nullptr) {
    for (const NewTokens& sequence : pass.sequences) angles_.extend(config_, sequence.context());
  }
  const std::int64_t c = config_.hidden;
  for (std::int64_t row = 0; row < pass.rows(); ++row) {
    const auto at = static_cast<std::size_t>(row);
    std::copy_n(token_table_ + pass.ids[at] * c, c, pass.x + row * c);
    if (position_table_ != nullptr)
      kernels().add(pass.x + row * c, position_table_ + pass.places[at].position * c, c);
  }
}

// Only the last position of a sequence is sampled, so only it is normalised and multiplied by the head.
std::span<const float> Model::logits(const Pass& pass) {
  const std::int64_t sampled = std::ranges::count_if(pass.sequences, &NewTokens::sampled);
  if (sampled == 0) return {};
  float* const last = last_.reserve(sampled * config_.hidden);
  float* to = last;
  for (const NewTokens& sequence : pass.sequences) {
    if (!sequence.sampled) continue;
    std::copy_n(pass.x + (sequence.row + sequence.tokens - 1) * config_.hidden, config_.hidden, to);
    to += config_.hidden;
  }
  within(last_norm_name_, [&] { normalise(last_norm_, last, sampled, last); });
  const llmprof::Module range(head_name_);
  float* const logits = logits_.reserve(sampled * config_.vocab);
  if (ranks_ == nullptr) {
    apply(head_, last, sampled, Store::kReplace, logits, pool_);
  } else {
    float* const part = part_.reserve(sampled * head_.out);
    apply(head_, last, sampled, Store::kReplace, part, pool_);
    std::fill_n(logits, sampled * config_.vocab, 0.0F);
    for (std::int64_t row = 0; row < sampled; ++row)
      std::copy_n(part + row * head_.out, head_.out, logits + row * config_.vocab + ranks_->rank() * head_.out);
    sum_over_ranks(logits, sampled * config_.vocab);
  }
  return {logits, static_cast<std::size_t>(sampled * config_.vocab)};
}

void Model::normalise(const Norm& norm, const float* x, std::int64_t rows, float* out) {
  const std::int64_t n = config_.hidden;
  const auto epsilon = static_cast<float>(config_.norm_epsilon);
  pool_.parallel_for(rows, std::max<std::int64_t>(1, (1 << 15) / n), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const float* const in = x + row * n;
      if (norm.bias == nullptr) {
        kernels().rms_norm(in, norm.weight, epsilon, n, out + row * n);
      } else {
        kernels().layer_norm(in, norm.weight, norm.bias, epsilon, n, out + row * n);
      }
    }
  });
}

void Model::cache(const Pass& pass, std::int64_t layer, const float* qkv) {
  const std::int64_t c = config_.hidden, dim = config_.head_dim;
  pool_.parallel_for(pass.rows(), std::max<std::int64_t>(1, (1 << 15) / c), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const auto [position, block, slot] = pass.places[static_cast<std::size_t>(row)];
      const float* const key = qkv + row * 3 * c + c;  // (H, D)
      for (std::int64_t head = 0; head < config_.heads; ++head) {
        std::copy_n(key + head * dim, dim, pass.cache.keys(layer, block, head) + slot * dim);
        std::copy_n(key + c + head * dim, dim, pass.cache.values(layer, block, head) + slot * dim);
      }
    }
  });
}

void Model::rotate_and_cache(const Pass& pass, std::int64_t layer, float* q, const float* k, const float* v) {
  const std::int64_t dim = config_.head_dim, half = dim / 2;
  const std::int64_t min_rows = std::max<std::int64_t>(1, (1 << 14) / (config_.heads * dim));
  pool_.parallel_for(pass.rows(), min_rows, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const auto [position, block, slot] = pass.places[static_cast<std::size_t>(row)];
      const float* const cosine = angles_.cosine.data() + position * half;
      const float* const sine = angles_.sine.data() + position * half;
      for (std::int64_t head = 0; head < config_.heads; ++head) {
        float* const query = q + (row * config_.heads + head) * dim;
        kernels().rotate(query, cosine, sine, half, query);
      }
      for (std::int64_t head = 0; head < config_.kv_heads; ++head) {
        const std::int64_t from = (row * config_.kv_heads + head) * dim;
        kernels().rotate(k + from, cosine, sine, half, pass.cache.keys(layer, block, head) + slot * dim);
        std::copy_n(v + from, dim, pass.cache.values(layer, block, head) + slot * dim);
      }
    }
  });
}

void Model::attend(const Pass& pass, std::int64_t layer, const float* q, std::int64_t row_stride) {
  workload::attend({.config = config_,
                    .sequences = pass.sequences,
                    .queries = {.data = q, .row_stride = row_stride},
                    .cache = pass.cache,
                    .layer = layer,
                    .scores = scores_,
                    .gathered = gathered_,
                    .out = mixed(),
                    .pool = pool_});
}

void Model::gelu(float* x, std::int64_t count) {
  pool_.parallel_for(count, 1 << 14,
                     [&](std::int64_t begin, std::int64_t end) { kernels().gelu(x + begin, end - begin); });
}

void Model::silu_multiply(float* gate, const float* up, std::int64_t count) {
  pool_.parallel_for(count, 1 << 14, [&](std::int64_t begin, std::int64_t end) {
    kernels().silu_multiply(gate + begin, up + begin, end - begin);
  });
}

Gpt2LayerNames gpt2_layer_names(ModuleNames& names, const std::string& path) {
  return {.layer = names.add(path),
          .ln_1 = names.add(path + ".ln_1"),
          .attn = names.add(path + ".attn"),
          .c_attn = names.add(path + ".attn.c_attn"),
          .core = names.add(path + ".attn.core"),
          .c_proj = names.add(path + ".attn.c_proj"),
          .ln_2 = names.add(path + ".ln_2"),
          .mlp = names.add(path + ".mlp"),
          .mlp_c_fc = names.add(path + ".mlp.c_fc"),
          .act = names.add(path + ".mlp.act"),
          .mlp_c_proj = names.add(path + ".mlp.c_proj")};
}

LlamaLayerNames llama_layer_names(ModuleNames& names, const std::string& path) {
  return {.layer = names.add(path),
          .input_layernorm = names.add(path + ".input_layernorm"),
          .self_attn = names.add(path + ".self_attn"),
          .q_proj = names.add(path + ".self_attn.q_proj"),
          .k_proj = names.add(path + ".self_attn.k_proj"),
          .v_proj = names.add(path + ".self_attn.v_proj"),
          .rope = names.add(path + ".self_attn.rope"),
          .core = names.add(path + ".self_attn.core"),
          .o_proj = names.add(path + ".self_attn.o_proj"),
          .post_attention_layernorm = names.add(path + ".post_attention_layernorm"),
          .mlp = names.add(path + ".mlp"),
          .gate_proj = names.add(path + ".mlp.gate_proj"),
          .up_proj = names.add(path + ".mlp.up_proj"),
          .act = names.add(path + ".mlp.act"),
          .down_proj = names.add(path + ".mlp.down_proj")};
}

namespace {

// Few rows: one matrix-vector product each. OpenBLAS 0.3.21 first repacks the whole matrix for a matrix product, which
// is worth it from about 8 rows on; with (2816, 1024) and 4 rows it took 31 ms against 15 ms.
constexpr std::int64_t kMostVectorRows = 4;

void start_with_bias(const Linear& linear, std::int64_t rows, Store store, float* y, ThreadPool& pool) {
  const std::int64_t min_rows = std::max<std::int64_t>(1, (1 << 15) / linear.out);
  pool.parallel_for(rows, min_rows, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      float* const out = y + row * linear.out;
      if (store == Store::kReplace) {
        std::copy_n(linear.bias, linear.out, out);
      } else {
        kernels().add(out, linear.bias, linear.out);
      }
    }
  });
}

}  // namespace

void apply(const Linear& linear, const float* x, std::int64_t rows, Store store, float* y, ThreadPool& pool) {
  if (linear.bias != nullptr) start_with_bias(linear, rows, store, y, pool);
  const float beta = linear.bias != nullptr || store == Store::kAccumulate ? 1.0F : 0.0F;
  const auto in = static_cast<blasint>(linear.in);
  const auto out = static_cast<blasint>(linear.out);
  if (rows > kMostVectorRows) {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, static_cast<blasint>(rows), out, in, 1.0F, x, in,
                linear.weight, in, beta, y, out);
    return;
  }
  for (std::int64_t row = 0; row < rows; ++row) {
    cblas_sgemv(CblasRowMajor, CblasNoTrans, out, in, 1.0F, linear.weight, in, x + row * linear.in, 1, beta,
                y + row * linear.out, 1);
  }
}

void set_blas_threads(std::int64_t threads) { openblas_set_num_threads(static_cast<int>(threads)); }

const RowKernels& kernels() {
  static const bool modern = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return modern ? kAvx2Kernels : kBaselineKernels;
}

}  // namespace llmprof::workload
