#include "workload/train/trainer.h"

#include <algorithm>

#include "base/assert.h"
#include "workload/kernels.h"

namespace llmprof::workload {

CpuTraining::CpuTraining(const ModelConfig& config, const TrainOptions& options, ThreadPool& pool)
    : config_(config),
      batch_(options.batch),
      tokens_(options.tokens),
      rows_(options.batch * options.tokens),
      pool_(pool) {
  LLMPROF_ASSERT(config.family == Family::kGpt2 && options.tokens <= config.positions);
}

void CpuTraining::set_batch(std::span<const Token> inputs, std::span<const Token> targets) {
  LLMPROF_ASSERT(std::ssize(inputs) == rows_ && std::ssize(targets) == rows_);
  inputs_.assign(inputs.begin(), inputs.end());
  targets_.assign(targets.begin(), targets.end());
}

void CpuTraining::embed(const float* table, const float* positions, float* out) {
  const std::int64_t c = config_.hidden;
  pool_.parallel_for(rows_, worthwhile_rows(c), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      std::copy_n(table + inputs_[static_cast<std::size_t>(row)] * c, c, out + row * c);
      kernels().add(out + row * c, positions + row % tokens_ * c, c);
    }
  });
}

void CpuTraining::normalise(const Norm& norm, const float* x, float* out) {
  const std::int64_t n = config_.hidden;
  pool_.parallel_for(rows_, worthwhile_rows(n), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      kernels().layer_norm(x + row * n, norm.weight, norm.bias, static_cast<float>(config_.norm_epsilon), n,
                           out + row * n);
    }
  });
}

void CpuTraining::gelu(const float* x, float* out) {
  pool_.parallel_for(rows_ * config_.intermediate, 1 << 14, [&](std::int64_t begin, std::int64_t end) {
    std::copy(x + begin, x + end, out + begin);
    kernels().gelu(out + begin, end - begin);
  });
}

void CpuTraining::copy_stream(const float* from, float* to) { std::copy_n(from, rows_ * config_.hidden, to); }
void CpuTraining::clear_stream(float* to) { std::fill_n(to, rows_ * config_.hidden, 0.0F); }

CausalAttention CpuTraining::attention_of(const float* qkv, float* probabilities) const {
  return {.batch = batch_,
          .tokens = tokens_,
          .heads = config_.heads,
          .head_dim = config_.head_dim,
          .qkv = qkv,
          .probabilities = probabilities,
          .pool = pool_};
}

}  // namespace llmprof::workload
