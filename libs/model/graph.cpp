#include <fmt/format.h>

#include <algorithm>

#include "base/assert.h"
#include "model/families.h"
#include "model/model.h"
#include "model/quantization.h"

namespace llmprof::model {
namespace {

Structure structure_of(const Config& config) {
  const Family* family = find_family(config.family);
  LLMPROF_ASSERT(family != nullptr);
  return family != nullptr ? family->describe(config) : Structure{};
}

// Biases stay as they are: bytes are the average over matrix and bias.
Number quantised_weight(const Op& op, const Config& config) {
  Number weight = config.quantization->weight;
  const auto matrix = static_cast<double>(op.multiply_adds), all = static_cast<double>(op.parameters);
  if (all > matrix) weight.bytes = (matrix * weight.bytes + (all - matrix) * config.weight.bytes) / all;
  return weight;
}

// Weights as the checkpoint holds them, else as the quantisation says, else plain.
void settle(Op& op, const std::string& module, const Config& config, const Coverage* coverage) {
  const bool quantised = op.quantisable && coverage != nullptr && coverage->covers(module);
  const auto stored = config.stored.find(module);
  op.weight = stored != config.stored.end() ? stored->second : quantised ? quantised_weight(op, config) : config.weight;
  const bool own = quantised && !config.quantization->arithmetic.empty();
  op.arithmetic = own ? config.quantization->arithmetic : config.arithmetic;
}

// Only then do equal layers differ in the types of their weights.
bool settled_by_path(const Config& config) { return config.quantization || !config.stored.empty(); }

bool same_types(const std::vector<Op>& a, const std::vector<Op>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Op& x, const Op& y) { return x.weight == y.weight && x.arithmetic == y.arithmetic; });
}

}  // namespace

Graph::Graph(const Config& config) : config_(config) {
  Structure structure = structure_of(config);
  layer_prefix_ = structure.layer_prefix;
  const auto coverage = config.quantization ? std::make_unique<const Coverage>(*config.quantization) : nullptr;
  if (config.has_first) first_.ops = std::move(structure.first);
  if (config.has_last) last_.ops = std::move(structure.last);
  for (Group* group : {&first_, &last_}) {
    for (Op& op : group->ops) settle(op, op.name, config, coverage.get());
  }
  std::vector<std::vector<std::uint32_t>> groups_of_kind(structure.kinds.size());
  for (std::size_t i = 0; i < config.kind_of_layer.size(); ++i) {
    const std::uint32_t kind = config.kind_of_layer[i];
    const std::int64_t number = config.first_layer + static_cast<std::int64_t>(i);
    const std::uint32_t group = group_of(number, structure.kinds.at(kind), groups_of_kind[kind], coverage.get());
    groups_[group].layers.push_back(number);
    group_of_layer_.push_back(group);
  }
}

std::uint32_t Graph::group_of(std::int64_t layer, const std::vector<Op>& kind, std::vector<std::uint32_t>& candidates,
                              const Coverage* coverage) {
  if (!candidates.empty() && !settled_by_path(config_)) return candidates.front();
  std::vector<Op> ops = kind;
  for (Op& op : ops) settle(op, fmt::format("{}.{}.{}", layer_prefix_, layer, op.name), config_, coverage);
  for (const std::uint32_t candidate : candidates) {
    if (same_types(groups_[candidate].ops, ops)) return candidate;
  }
  candidates.push_back(static_cast<std::uint32_t>(groups_.size()));
  groups_.push_back({.ops = std::move(ops), .layers = {}});
  return candidates.back();
}

}  // namespace llmprof::model
