#include "model/cost.h"

#include <algorithm>
#include <cmath>

namespace llmprof::model {

namespace {

// Products per pair of a query and a key: score and value, in every head.
double pair_flops(const Attention& a, bool absorbed) {
  const auto heads = static_cast<double>(a.heads);
  const auto expanded = static_cast<double>(a.qk_dim + a.v_dim);
  const auto latent = static_cast<double>(a.kv_rank + a.rope_dim + a.kv_rank);
  return 2 * heads * (absorbed ? latent : expanded);
}

// Of making keys and values from one latent; also what absorbing it costs for one new token.
double expansion_flops(const Attention& a) {
  const auto values = static_cast<double>(a.heads * (a.qk_dim - a.rope_dim + a.v_dim));
  return 2 * static_cast<double>(a.kv_rank) * values;
}

bool absorbed(const Attention& a, const Amounts::Group& g, Latent latent) {
  if (!a.latent() || latent == Latent::kExpanded) return false;
  if (latent == Latent::kAbsorbed) return true;
  const double pairs = attended_pairs(a, g.tokens, g.context);
  const double expand_context = (attended_keys(a, g.tokens, g.context) - g.tokens) * expansion_flops(a);
  return pairs * pair_flops(a, true) < pairs * pair_flops(a, false) + expand_context;
}

double core_flops(const Attention& a, const Amounts& amounts, Latent latent) {
  double flops = 0;
  for (const Amounts::Group& g : amounts.groups()) {
    flops += g.count * pair_flops(a, absorbed(a, g, latent)) * attended_pairs(a, g.tokens, g.context);
  }
  return flops;
}

// A cache that is expanded needs kv_b_proj for all keys that are seen, not only for the new ones.
double expanded_rows(const Attention& a, const Amounts& amounts, Latent latent) {
  double rows = 0;
  for (const Amounts::Group& g : amounts.groups()) {
    rows += g.count * (absorbed(a, g, latent) ? g.tokens : attended_keys(a, g.tokens, g.context));
  }
  return rows;
}

double working_rows(const Op& op, const Amounts& amounts, const Conditions& conditions) {
  if (op.latent_expansion && op.attention) return expanded_rows(*op.attention, amounts, conditions.latent);
  return rows_of(op, amounts);
}

double flops_of(const Op& op, const Amounts& amounts, const Conditions& conditions) {
  if (op.attention && !op.latent_expansion) return core_flops(*op.attention, amounts, conditions.latent);
  return 2 * static_cast<double>(op.multiply_adds) * working_rows(op, amounts, conditions);
}

// The values of a table's rows that are looked up.
double looked_up(const Op& op, const Lookup& table, const Config& config, const Amounts& amounts) {
  const double wanted = table.by_position ? amounts.positions() : amounts.rows(op.rows) * config.vocab_share;
  return std::min(wanted, static_cast<double>(table.rows)) * static_cast<double>(table.width);
}

// Copies of the operator's parameters that a pass touches.
double touched(const Op& op, const Amounts& amounts) {
  return op.experts ? distinct_experts(*op.experts, amounts.rows(op.rows)) : 1;
}

double weight_bytes_of(const Op& op, const Config& config, const Amounts& amounts) {
  if (amounts.rows(op.rows) <= 0) return 0;
  double values = static_cast<double>(op.parameters) * touched(op, amounts);
  for (const Lookup& table : op.lookups) values += looked_up(op, table, config, amounts);
  return values * op.weight.bytes;
}

double kv_bytes_of(const Op& op, const Config& config, const Amounts& amounts) {
  if (!op.attention || op.latent_expansion) return 0;
  double values = 0;  // read and written
  for (const Amounts::Group& g : amounts.groups()) {
    if (g.tokens > 0) values += g.count * (attended_keys(*op.attention, g.tokens, g.context) + g.tokens);
  }
  return values * static_cast<double>(op.attention->kv_values()) * config.kv.bytes;
}

// What parameters and their gradients move on the way back: a parameter that the input's gradient needs is read, a
// gradient is written. The rows of a tied table are added to what lm_head wrote: read, too.
double gradient_bytes_of(const Op& op, const Config& config, const Amounts& amounts) {
  if (amounts.rows(op.rows) <= 0) return 0;
  if (op.frozen) return static_cast<double>(op.backward_reads) * touched(op, amounts) * op.weight.bytes;
  double values = static_cast<double>(op.backward_reads + op.parameters) * touched(op, amounts);
  for (const Lookup& table : op.lookups) {
    const bool added = config.tied_embeddings && !table.by_position;
    values += looked_up(op, table, config, amounts) * (added ? 2 : 1);
  }
  return values * op.weight.bytes;
}

// Tensors with this many values per row that do not fit the chip.
double moved_bytes(const std::vector<std::int64_t>& tensors, double rows, const Config& config,
                   const Conditions& conditions) {
  const double row_bytes = rows * config.activation.bytes;
  double total = 0;
  for (const std::int64_t width : tensors) {
    const double bytes = row_bytes * static_cast<double>(width);
    if (bytes > static_cast<double>(conditions.on_chip_bytes)) total += bytes;
  }
  return total;
}

// Training has no cache: keys and values are tensors like any other.
std::vector<std::int64_t> tensors_of_training(const Op& op) {
  std::vector<std::int64_t> tensors = op.tensors;
  if (op.attention && !op.latent_expansion) {
    tensors.push_back(op.attention->kv_heads * op.attention->qk_dim);
    tensors.push_back(op.attention->kv_heads * op.attention->v_dim);
  }
  return tensors;
}

// What causal attention sees: all that came before, a window of it, or the query's own chunk.

// 1 + 2 + … + n
double triangle(double n) { return n * (n + 1) / 2; }

// Sum over the first p queries of ((q - 1) mod s) + 1: whole chunks, and the begun one.
double chunk_pairs(double p, double s) {
  const double whole = std::floor(p / s);
  return whole * triangle(s) + triangle(p - whole * s);
}

}  // namespace

Amounts::Amounts(const Pass& pass) {
  const bool whole = pass.kind != PassKind::kInference;
  const auto positive = [](std::int64_t value) { return static_cast<double>(std::max<std::int64_t>(0, value)); };
  for (const Sequences& s : pass.sequences) {
    Group group{.count = positive(s.count), .tokens = positive(s.tokens), .context = 0, .sampled = 0};
    group.context = whole ? group.tokens : std::max(positive(s.context), group.tokens);
    group.sampled = whole ? group.tokens : std::min(positive(s.sampled), group.tokens);
    tokens_ += group.count * group.tokens;
    sampled_ += group.count * group.sampled;
    if (group.count > 0) positions_ += group.tokens;
    groups_.push_back(group);
  }
}

double distinct_experts(const Experts& experts, double tokens) {
  if (experts.all <= 0 || tokens <= 0) return 0;
  const double chosen = static_cast<double>(experts.per_token) / static_cast<double>(experts.all);
  if (chosen >= 1) return static_cast<double>(experts.here);
  // An expert stays untouched if every token chooses others. expm1 and log1p: exact for one token of many experts.
  const double touched = -std::expm1(tokens * experts.batches * std::log1p(-chosen));
  return static_cast<double>(experts.here) * touched;
}

double rows_of(const Op& op, const Amounts& amounts) {
  const double rows = amounts.rows(op.rows);
  if (!op.experts) return rows;
  if (op.experts->all <= 0) return 0;
  const double share = static_cast<double>(op.experts->here) / static_cast<double>(op.experts->all);
  return rows * op.experts->batches * static_cast<double>(op.experts->per_token) * share;
}

Costs inference_cost(const Op& op, const Config& config, const Amounts& amounts, const Conditions& conditions) {
  return {.flops = flops_of(op, amounts, conditions),
          .weight_bytes = weight_bytes_of(op, config, amounts),
          .kv_bytes = kv_bytes_of(op, config, amounts),
          .activation_bytes = moved_bytes(op.tensors, working_rows(op, amounts, conditions), config, conditions)};
}

Costs forward_cost(const Op& op, const Config& config, const Amounts& amounts, const Conditions& conditions) {
  const Conditions expanded{conditions.on_chip_bytes, Latent::kExpanded};
  return {.flops = flops_of(op, amounts, expanded),
          .weight_bytes = weight_bytes_of(op, config, amounts),
          .activation_bytes = moved_bytes(tensors_of_training(op), rows_of(op, amounts), config, conditions)};
}

Costs backward_cost(const Op& op, const Config& config, const Amounts& amounts, const Conditions& conditions) {
  const Conditions expanded{conditions.on_chip_bytes, Latent::kExpanded};
  // Each product of the way forward has two on the way back, of the same size: one for each of its operands, unless
  // one is of weights that are not trained.
  return {.flops = (op.frozen && op.multiply_adds > 0 ? 1 : 2) * flops_of(op, amounts, expanded),
          .weight_bytes = gradient_bytes_of(op, config, amounts),
          .activation_bytes = moved_bytes(op.backward_tensors, rows_of(op, amounts), config, conditions)};
}

Costs optimizer_cost(const Op& op) {
  // Parameter, gradient and two moments are read; parameter and moments are written.
  if (op.frozen) return {};
  const double per_parameter = 3 * op.weight.bytes + 4 * kMomentBytes;
  return {.weight_bytes = static_cast<double>(op.own_parameters()) * per_parameter};
}

bool used(const Op& op, PassKind kind) {
  if (op.use == Use::kAlways) return true;
  return (op.use == Use::kInference) == (kind == PassKind::kInference);
}

Costs cost_of(const Op& op, const Config& config, PassKind kind, const Amounts& amounts, const Conditions& conditions) {
  switch (kind) {
    case PassKind::kForward:
      return forward_cost(op, config, amounts, conditions);
    case PassKind::kBackward:
      return backward_cost(op, config, amounts, conditions);
    case PassKind::kOptimizer:
      return optimizer_cost(op);
    case PassKind::kInference:
      break;
  }
  return inference_cost(op, config, amounts, conditions);
}

double attended_pairs(const Attention& attention, double n, double c) {
  if (attention.chunk > 0) {
    const auto chunk = static_cast<double>(attention.chunk);
    return chunk_pairs(c, chunk) - chunk_pairs(c - n, chunk);
  }
  if (!attention.causal) return n * c;
  const double all = n * c - n * (n - 1) / 2;  // query i of n (i = 1…n) sees c - n + i keys, itself included
  if (attention.window == 0) return all;
  const auto window = static_cast<double>(attention.window);
  // The last queries see more than the window: each of them loses what is beyond it.
  const double beyond = std::max(0.0, c - window), before = std::max(0.0, c - n - window);
  return all - (triangle(beyond) - triangle(before));
}

double attended_keys(const Attention& attention, double n, double c) {
  if (attention.chunk > 0) {
    const auto chunk = static_cast<double>(attention.chunk);
    return c - std::floor((c - n) / chunk) * chunk;
  }
  if (attention.window == 0) return c;
  return std::min(c, static_cast<double>(attention.window) + n - 1);
}

}  // namespace llmprof::model
