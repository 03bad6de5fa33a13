#include "workload/model.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "workload/kernels.h"

namespace llmprof::workload {

Model::Model(const ModelConfig& config, Weights weights, ThreadPool& pool, Ranks* ranks)
    : config_(config), weights_(std::move(weights)), pool_(pool), ranks_(ranks), head_name_(names_.add("lm_head")) {
  const char* const embedding = config.family == Family::kGpt2 ? "wte" : "embed_tokens";
  head_ = weights_.linear(config.tied_embeddings ? embedding : "lm_head");
  if (ranks == nullptr) return;
  head_.out /= ranks->count();
  head_.weight += ranks->rank() * head_.out * head_.in;
}

std::span<const float> Model::forward(std::span<const Token> tokens, KvCache& cache) {
  const auto count = static_cast<std::int64_t>(tokens.size());
  LLMPROF_ASSERT(count > 0 && count % cache.batch() == 0);
  LLMPROF_ASSERT(cache.length() + count / cache.batch() <= cache.capacity());
  float* const x = residual_.reserve(count * config_.hidden);
  const Pass pass{
      {.batch = cache.batch(), .tokens = count / cache.batch(), .position = cache.length()}, tokens, cache, x};
  normed_.reserve(count * config_.hidden);
  mixed_.reserve(count * config_.heads * config_.head_dim);
  embed(pass);
  for (std::int64_t layer = 0; layer < config_.layers; ++layer) run_layer(pass, layer);
  cache.advance(pass.tokens);
  return logits(pass);
}

// Only the last position of each sequence is sampled, so only it is normalised and multiplied by the head.
std::span<const float> Model::logits(const Pass& pass) {
  float* const last = last_.reserve(pass.batch * config_.hidden);
  for (std::int64_t sequence = 0; sequence < pass.batch; ++sequence) {
    const std::int64_t row = (sequence + 1) * pass.tokens - 1;
    std::copy_n(pass.x + row * config_.hidden, config_.hidden, last + sequence * config_.hidden);
  }
  final_norm(last, pass.batch, last);
  const llmprof::Module range(head_name_);
  float* const logits = logits_.reserve(pass.batch * config_.vocab);
  if (ranks_ == nullptr) {
    project(head_, last, pass.batch, Store::kReplace, logits);
  } else {
    float* const part = part_.reserve(pass.batch * head_.out);
    project(head_, last, pass.batch, Store::kReplace, part);
    std::fill_n(logits, pass.batch * config_.vocab, 0.0F);
    for (std::int64_t row = 0; row < pass.batch; ++row)
      std::copy_n(part + row * head_.out, head_.out, logits + row * config_.vocab + ranks_->rank() * head_.out);
    add_up(logits, pass.batch * config_.vocab);
  }
  return {logits, static_cast<std::size_t>(pass.batch * config_.vocab)};
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

std::unique_ptr<Model> make_model(const ModelConfig& config, Weights weights, ThreadPool& pool, Ranks* ranks) {
  return config.family == Family::kGpt2 ? make_gpt2(config, std::move(weights), pool)
                                        : make_llama(config, std::move(weights), pool, ranks);
}

}  // namespace llmprof::workload
