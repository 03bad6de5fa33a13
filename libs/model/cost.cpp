#include "model/cost.h"

#include <algorithm>

namespace llmprof::model {
namespace {

// Query i of n new tokens (i = 1…n) sees c - n + i keys, itself included: n·c - n(n-1)/2 pairs of query and key.
double causal_pairs(double n, double c) { return n * c - n * (n - 1) / 2; }

double flops_of(const Op& op, const Config& config, const Amounts& amounts) {
  if (!op.attention) return 2 * static_cast<double>(op.multiply_adds) * amounts.rows_of(op.rows);
  const double per_pair = 2 * static_cast<double>(config.heads) * 2 * static_cast<double>(config.head_dim);
  return per_pair * causal_pairs(amounts.tokens, amounts.context) * amounts.batch;
}

// The values of a table's rows that are looked up.
double looked_up(const Op& op, const Lookup& table, const Amounts& amounts) {
  const double wanted = table.by_position ? amounts.tokens : amounts.rows_of(op.rows);
  return std::min(wanted, static_cast<double>(table.rows)) * static_cast<double>(table.width);
}

double weight_bytes_of(const Op& op, const Config& config, const Amounts& amounts) {
  if (amounts.rows_of(op.rows) <= 0) return 0;
  auto values = static_cast<double>(op.parameters);
  for (const Lookup& table : op.lookups) values += looked_up(op, table, amounts);
  return values * static_cast<double>(config.weight_bytes);
}

double kv_bytes_of(const Op& op, const Config& config, const Amounts& amounts) {
  if (!op.attention || amounts.tokens <= 0) return 0;
  const double per_token = 2 * static_cast<double>(config.kv_heads) * static_cast<double>(config.head_dim) *
                           static_cast<double>(config.kv_bytes);
  return (amounts.context + amounts.tokens) * amounts.batch * per_token;
}

// What parameters and their gradients move on the way back: a parameter that the input's gradient needs is read, a
// gradient is written. The rows of a tied table are added to what lm_head wrote: read, too.
double gradient_bytes_of(const Op& op, const Config& config, const Amounts& amounts) {
  if (amounts.rows_of(op.rows) <= 0) return 0;
  auto values = static_cast<double>(op.backward_reads + op.parameters);
  for (const Lookup& table : op.lookups) {
    const bool added = config.tied_embeddings && !table.by_position;
    values += looked_up(op, table, amounts) * (added ? 2 : 1);
  }
  return values * static_cast<double>(config.weight_bytes);
}

// Tensors with this many values per row that do not fit the chip.
double activation_bytes_of(const std::vector<std::int64_t>& tensors, double rows, const Config& config,
                           std::int64_t on_chip_bytes) {
  const double row_bytes = rows * static_cast<double>(config.activation_bytes);
  double total = 0;
  for (const std::int64_t width : tensors) {
    const double bytes = row_bytes * static_cast<double>(width);
    if (bytes > static_cast<double>(on_chip_bytes)) total += bytes;
  }
  return total;
}

}  // namespace

Amounts amounts_of(const Pass& pass) {
  const std::int64_t tokens = std::max<std::int64_t>(0, pass.tokens);
  const bool whole = pass.kind != PassKind::kInference;
  return {.batch = static_cast<double>(std::max<std::int64_t>(0, pass.batch)),
          .tokens = static_cast<double>(tokens),
          .context = static_cast<double>(whole ? tokens : std::max(pass.context, tokens)),
          .sampled = static_cast<double>(whole ? tokens : std::clamp<std::int64_t>(pass.sampled, 0, tokens))};
}

OpCost inference_cost(const Op& op, const Config& config, const Amounts& amounts, std::int64_t on_chip_bytes) {
  return {.flops = flops_of(op, config, amounts),
          .weight_bytes = weight_bytes_of(op, config, amounts),
          .kv_bytes = kv_bytes_of(op, config, amounts),
          .activation_bytes = activation_bytes_of(op.tensors, amounts.rows_of(op.rows), config, on_chip_bytes)};
}

OpCost forward_cost(const Op& op, const Config& config, const Amounts& amounts, std::int64_t on_chip_bytes) {
  std::vector<std::int64_t> tensors = op.tensors;
  if (op.attention)
    tensors.insert(tensors.end(), 2, config.kv_heads * config.head_dim);  // K and V: no cache holds them
  return {.flops = flops_of(op, config, amounts),
          .weight_bytes = weight_bytes_of(op, config, amounts),
          .activation_bytes = activation_bytes_of(tensors, amounts.rows_of(op.rows), config, on_chip_bytes)};
}

OpCost backward_cost(const Op& op, const Config& config, const Amounts& amounts, std::int64_t on_chip_bytes) {
  // Each product of the way forward has two on the way back, of the same size: one for each of its operands.
  return {
      .flops = 2 * flops_of(op, config, amounts),
      .weight_bytes = gradient_bytes_of(op, config, amounts),
      .activation_bytes = activation_bytes_of(op.backward_tensors, amounts.rows_of(op.rows), config, on_chip_bytes)};
}

OpCost optimizer_cost(const Op& op, const Config& config) {
  // Parameter, gradient and two moments are read; parameter and moments are written.
  const double per_parameter = 3 * static_cast<double>(config.weight_bytes) + 4 * kMomentBytes;
  return {.weight_bytes = static_cast<double>(op.own_parameters()) * per_parameter};
}

}  // namespace llmprof::model
