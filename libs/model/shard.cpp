#include "model/shard.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/errors.h"
#include "model/cost.h"

namespace llmprof::model {
namespace {

// Of `whole` things the part of rank `rank` of `ranks`: parts differ by at most one and add up.
std::int64_t part(std::int64_t whole, std::int64_t ranks, std::int64_t rank) {
  return whole * (rank + 1) / ranks - whole * rank / ranks;
}

Result<void> check(std::string_view what, std::int64_t ranks, std::int64_t rank, std::int64_t most) {
  if (ranks < 1 || ranks > most) {
    return usage_error("{} parallelism of {} is not possible: this model allows 1 to {}", what, ranks, most);
  }
  if (rank < 0 || rank >= ranks) return usage_error("{} rank {} of {} does not exist", what, rank, ranks);
  return {};
}

Result<void> check(const Config& config, const Parallel& parallel, const Rank& rank) {
  std::int64_t heads = INT64_MAX, experts = 1;
  for (const LayerKind& kind : config.kinds) {
    heads = std::min(heads, kind.attention.heads);
    if (kind.mlp.experts > 0) experts = std::max(experts, kind.mlp.experts);
  }
  LLMPROF_TRY(check("tensor", parallel.tensor, rank.tensor, heads));
  LLMPROF_TRY(check("pipeline", parallel.pipeline, rank.pipeline, std::max<std::int64_t>(1, config.layers())));
  LLMPROF_TRY(check("expert", parallel.expert, rank.expert, experts));
  const std::int64_t larger = std::max(parallel.tensor, parallel.expert);
  if (larger % std::min(parallel.tensor, parallel.expert) != 0) {
    return Error{ErrorCode::kUsage,
                 fmt::format("expert parallelism of {} and tensor parallelism of {} do not fit together",
                             parallel.expert, parallel.tensor),
                 "one must be a multiple of the other: experts are spread over the tensor ranks"};
  }
  return {};
}

void shard_attention(Attention& attention, std::int64_t ranks, std::int64_t rank) {
  const std::int64_t all_heads = attention.heads, all_kv_heads = attention.kv_heads;
  attention.heads = part(all_heads, ranks, rank);
  if (attention.latent()) {
    attention.kv_heads = attention.heads;
    return;
  }
  // Fewer key-value heads than ranks: several ranks hold a copy of the same one.
  attention.kv_heads = all_kv_heads < ranks ? 1 : part(all_kv_heads, ranks, rank);
  if (attention.q_norm == all_heads * attention.qk_dim) attention.q_norm = attention.heads * attention.qk_dim;
  if (attention.k_norm == all_kv_heads * attention.qk_dim && all_kv_heads > 1) {
    attention.k_norm = attention.kv_heads * attention.qk_dim;
  }
}

void shard_mlp(Mlp& mlp, const Parallel& parallel, const Rank& rank) {
  if (mlp.shared_width > 0) mlp.shared_width = part(mlp.shared_width, parallel.tensor, rank.tensor);
  if (mlp.experts == 0) {
    mlp.width = part(mlp.width, parallel.tensor, rank.tensor);
    return;
  }
  mlp.local_experts = part(mlp.experts, parallel.expert, rank.expert);
  // Tensor ranks beyond the expert ranks split the experts themselves; expert ranks beyond the tensor ranks bring
  // tokens of their own.
  const std::int64_t split = std::max<std::int64_t>(1, parallel.tensor / parallel.expert);
  mlp.width = part(mlp.width, split, rank.tensor % split);
  mlp.expert_batches = std::max(1.0, static_cast<double>(parallel.expert) / static_cast<double>(parallel.tensor));
}

void shard_layers(Config& config, std::int64_t ranks, std::int64_t rank) {
  const std::int64_t layers = config.layers();
  const std::int64_t begin = layers * rank / ranks, end = layers * (rank + 1) / ranks;
  config.kind_of_layer = {config.kind_of_layer.begin() + begin, config.kind_of_layer.begin() + end};
  config.first_layer += begin;
  config.has_first = config.has_first && rank == 0;
  config.has_last = config.has_last && rank == ranks - 1;
}

}  // namespace

Result<Config> shard(const Config& config, const Parallel& parallel, const Rank& rank) {
  LLMPROF_TRY(check(config, parallel, rank));
  Config out = config;
  for (LayerKind& kind : out.kinds) {
    shard_attention(kind.attention, parallel.tensor, rank.tensor);
    shard_mlp(kind.mlp, parallel, rank);
  }
  out.vocab = part(config.vocab, parallel.tensor, rank.tensor);
  out.vocab_share = config.vocab_share * static_cast<double>(out.vocab) / static_cast<double>(config.vocab);
  shard_layers(out, parallel.pipeline, rank.pipeline);
  return out;
}

double communication_bytes(const Config& whole, const Parallel& parallel, const Pass& pass) {
  const Amounts amounts(pass);
  const double rows_bytes = amounts.rows(Rows::kTokens) * static_cast<double>(whole.hidden) * whole.activation.bytes;
  const double layers = static_cast<double>(whole.layers()) / static_cast<double>(parallel.pipeline);
  const auto tensor = static_cast<double>(parallel.tensor), expert = static_cast<double>(parallel.expert);
  double total = layers * 2 * rows_bytes * 2 * (tensor - 1) / tensor;  // a ring sends the data twice, less one part
  if (parallel.pipeline > 1) total += rows_bytes / tensor;
  if (parallel.expert <= parallel.tensor) return total;  // the all-reduce after the experts has brought rows together
  std::int64_t chosen_rows = 0;
  for (const std::uint32_t kind : whole.kind_of_layer) chosen_rows += whole.kinds[kind].mlp.experts_per_token;
  const double sent = static_cast<double>(chosen_rows) / static_cast<double>(parallel.pipeline) * rows_bytes;
  return total + 2 * sent * (expert - 1) / expert;  // there and back
}

}  // namespace llmprof::model
