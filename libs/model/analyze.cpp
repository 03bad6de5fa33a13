#include <fmt/format.h>

#include "base/assert.h"
#include "model/cost.h"
#include "model/families.h"
#include "model/model.h"

namespace llmprof::model {
namespace {

Structure structure_of(const Config& config) {
  const Family* family = find_family(config.family);
  LLMPROF_ASSERT(family != nullptr);
  return family != nullptr ? family->describe(config) : Structure{};
}

bool used(const Op& op, PassKind kind) {
  if (op.use == Use::kAlways) return true;
  return (op.use == Use::kInference) == (kind == PassKind::kInference);
}

OpCost cost_of(const Op& op, const Config& config, const Pass& pass, std::int64_t on_chip_bytes) {
  const Amounts amounts = amounts_of(pass);
  switch (pass.kind) {
    case PassKind::kForward:
      return forward_cost(op, config, amounts, on_chip_bytes);
    case PassKind::kBackward:
      return backward_cost(op, config, amounts, on_chip_bytes);
    case PassKind::kOptimizer:
      return optimizer_cost(op, config);
    case PassKind::kInference:
      break;
  }
  return inference_cost(op, config, amounts, on_chip_bytes);
}

}  // namespace

std::int64_t parameters(const Config& config) {
  const Structure structure = structure_of(config);
  const auto sum = [](const std::vector<Op>& ops) {
    std::int64_t total = 0;
    for (const Op& op : ops) total += op.own_parameters();
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

double training_state_bytes(const Config& config) {
  return static_cast<double>(parameters(config)) * (2 * static_cast<double>(config.weight_bytes) + 2 * kMomentBytes);
}

std::vector<OpCost> analyze(const Config& config, const Pass& pass, std::int64_t on_chip_bytes) {
  const Structure structure = structure_of(config);
  std::vector<OpCost> costs;
  const auto add = [&](const std::vector<Op>& ops, const std::string& prefix) {
    for (const Op& op : ops) {
      if (!used(op, pass.kind)) continue;
      OpCost cost = cost_of(op, config, pass, on_chip_bytes);
      cost.module = prefix + op.name;
      cost.op = op.name;
      costs.push_back(std::move(cost));
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
