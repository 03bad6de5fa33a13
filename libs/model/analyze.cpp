#include <fmt/format.h>

#include <algorithm>

#include "base/assert.h"
#include "model/families.h"
#include "model/model.h"

namespace llmprof::model {
namespace {

Structure structure_of(const Config& config) {
  const Family* family = find_family(config.family);
  LLMPROF_ASSERT(family != nullptr);
  return family != nullptr ? family->describe(config) : Structure{};
}

std::int64_t own_parameters(const Op& op) {
  std::int64_t total = op.borrowed ? 0 : op.parameters;
  for (const Lookup& table : op.lookups) total += table.rows * table.width;
  return total;
}

// The amounts of one pass, as floating point: products of the sizes of a large pass exceed 64 bits.
struct Amounts {
  double batch, tokens, context, sampled;
  double rows_of(Rows rows) const { return batch * (rows == Rows::kTokens ? tokens : sampled); }
};

// Passes come from other programs' annotations: whatever they say, no amount becomes negative.
Amounts amounts_of(const Pass& pass) {
  const std::int64_t tokens = std::max<std::int64_t>(0, pass.tokens);
  return {.batch = static_cast<double>(std::max<std::int64_t>(0, pass.batch)),
          .tokens = static_cast<double>(tokens),
          .context = static_cast<double>(std::max(pass.context, tokens)),
          .sampled = static_cast<double>(std::clamp<std::int64_t>(pass.sampled, 0, tokens))};
}

// Query i of n new tokens (i = 1…n) sees c - n + i keys, itself included: n·c - n(n-1)/2 pairs of query and key.
double causal_pairs(double n, double c) { return n * c - n * (n - 1) / 2; }

double flops_of(const Op& op, const Config& config, const Amounts& amounts) {
  if (!op.attention) return 2 * static_cast<double>(op.multiply_adds) * amounts.rows_of(op.rows);
  const double per_pair = 2 * static_cast<double>(config.heads) * 2 * static_cast<double>(config.head_dim);
  return per_pair * causal_pairs(amounts.tokens, amounts.context) * amounts.batch;
}

double weight_bytes_of(const Op& op, const Config& config, const Amounts& amounts) {
  if (amounts.rows_of(op.rows) <= 0) return 0;
  auto values = static_cast<double>(op.parameters);
  for (const Lookup& table : op.lookups) {
    const double wanted = table.by_position ? amounts.tokens : amounts.rows_of(op.rows);
    values += std::min(wanted, static_cast<double>(table.rows)) * static_cast<double>(table.width);
  }
  return values * static_cast<double>(config.weight_bytes);
}

double kv_bytes_of(const Op& op, const Config& config, const Amounts& amounts) {
  if (!op.attention || amounts.tokens <= 0) return 0;
  const double per_token = 2 * static_cast<double>(config.kv_heads) * static_cast<double>(config.head_dim) *
                           static_cast<double>(config.kv_bytes);
  return (amounts.context + amounts.tokens) * amounts.batch * per_token;
}

double activation_bytes_of(const Op& op, const Config& config, const Amounts& amounts, std::int64_t on_chip_bytes) {
  const double row_bytes = amounts.rows_of(op.rows) * static_cast<double>(config.activation_bytes);
  double total = 0;
  for (const std::int64_t width : op.tensors) {
    const double bytes = row_bytes * static_cast<double>(width);
    if (bytes > static_cast<double>(on_chip_bytes)) total += bytes;
  }
  return total;
}

}  // namespace

std::int64_t parameters(const Config& config) {
  const Structure structure = structure_of(config);
  const auto sum = [](const std::vector<Op>& ops) {
    std::int64_t total = 0;
    for (const Op& op : ops) total += own_parameters(op);
    return total;
  };
  return sum(structure.first) + config.layers * sum(structure.layer) + sum(structure.last);
}

double weights_read_bytes(const Config& config) {
  const Structure structure = structure_of(config);
  const auto sum = [](const std::vector<Op>& ops) {
    double total = 0;
    for (const Op& op : ops) total += static_cast<double>(op.parameters);
    return total;
  };
  const double values =
      sum(structure.first) + static_cast<double>(config.layers) * sum(structure.layer) + sum(structure.last);
  return values * static_cast<double>(config.weight_bytes);
}

std::vector<OpCost> analyze(const Config& config, const Pass& pass, std::int64_t on_chip_bytes) {
  const Structure structure = structure_of(config);
  const Amounts amounts = amounts_of(pass);
  std::vector<OpCost> costs;
  const auto add = [&](const std::vector<Op>& ops, const std::string& prefix) {
    for (const Op& op : ops) {
      costs.push_back({.module = prefix + op.name,
                       .op = op.name,
                       .flops = flops_of(op, config, amounts),
                       .weight_bytes = weight_bytes_of(op, config, amounts),
                       .kv_bytes = kv_bytes_of(op, config, amounts),
                       .activation_bytes = activation_bytes_of(op, config, amounts, on_chip_bytes)});
    }
  };
  add(structure.first, "");
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    add(structure.layer, fmt::format("{}.{}.", structure.layer_prefix, layer));
  }
  add(structure.last, "");
  return costs;
}

}  // namespace llmprof::model
