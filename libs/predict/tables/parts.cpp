#include "predict/tables/parts.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/strings.h"

namespace llmprof::predict {
namespace {

using model::Op;
using model::OpClass;

constexpr std::array<std::string_view, 18> kNames{
    "embedding",        "layernorm",       "qkv_proj",  "qk_norm", "rotary_emb", "attention",           "o_proj",
    "gate_up_proj",     "act_fn",          "down_proj", "router",  "moe",        "shared_gate_up_proj", "shared_act_fn",
    "shared_down_proj", "final_layernorm", "lm_head",   "sampler"};

// The last component of an operator's path: "kv_a_proj_with_mqa".
std::string last_name(const Op& op) { return op.name.substr(op.name.rfind('.') + 1); }

// Names the operators of one layer by their class and their place: families call them differently.
class LayerNames {
 public:
  explicit LayerNames(const std::vector<Op>& ops) {
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const Op& op = ops[i];
      if (op.op_class == OpClass::kAttention) core_ = i;
      if (op.op_class != OpClass::kProjection || op.experts) continue;
      (is_shared(op) ? last_shared_ : last_) = i;
    }
    latent_ = core_ < ops.size() && ops[core_].attention && ops[core_].attention->latent();
  }

  std::string of(const Op& op, std::size_t place) const {
    if (op.experts) return "moe";
    const std::string shared = is_shared(op) ? "shared_" : "";
    switch (op.op_class) {
      case OpClass::kNorm:
        return op.name.ends_with("q_norm") || op.name.ends_with("k_norm") ? "qk_norm"
               : base::contains(op.name, "_a_layernorm")                  ? last_name(op)
                                                                          : "layernorm";
      case OpClass::kRope:
        return "rotary_emb";
      case OpClass::kAttention:
        return "attention";
      case OpClass::kElementwise:
        return shared + "act_fn";
      case OpClass::kRouter:
        return "router";
      case OpClass::kProjection:
        return projection(op, place, shared);
      default:
        return last_name(op);
    }
  }

 private:
  static bool is_shared(const Op& op) { return base::contains(op.name, "shared"); }

  std::string projection(const Op& op, std::size_t place, const std::string& shared) const {
    if (place < core_) return latent_ ? last_name(op) : "qkv_proj";
    if (shared.empty() && place == core_ + 1) return "o_proj";
    const std::size_t last = shared.empty() ? last_ : last_shared_;
    return shared + (place == last ? "down_proj" : "gate_up_proj");
  }

  std::size_t core_ = SIZE_MAX - 1, last_ = SIZE_MAX, last_shared_ = SIZE_MAX;
  bool latent_ = false;
};

PartRows rows_of_part(const Op& op) {
  if (op.op_class == OpClass::kAttention) return PartRows::kAttention;
  return op.experts ? PartRows::kExperts : PartRows::kTokens;
}

// Norms are called one by one, with their own tables; whatever else has one name runs as one kernel.
void add_layer_parts(const model::Graph::Group& group, std::vector<Part>& parts) {
  const LayerNames names(group.ops);
  const auto layers = static_cast<std::int64_t>(group.layers.size());
  const std::size_t begin = parts.size();
  for (std::size_t i = 0; i < group.ops.size(); ++i) {
    const Op& op = group.ops[i];
    if (!model::used(op, model::PassKind::kInference)) continue;
    const std::string name = names.of(op, i);
    const auto same = std::find_if(parts.begin() + static_cast<std::ptrdiff_t>(begin), parts.end(),
                                   [&](const Part& part) { return part.name == name; });
    if (same == parts.end()) {
      parts.push_back({name, rows_of_part(op), {op}, layers});
    } else if (name == "layernorm") {
      same->calls += layers;
    } else {
      same->ops.push_back(op);
    }
  }
}

void add_last_parts(const std::vector<Op>& ops, std::vector<Part>& parts) {
  for (const Op& op : ops) {
    if (!model::used(op, model::PassKind::kInference)) continue;
    // Engines norm every row and pick the sampled ones then; libs/model counts what is needed.
    if (op.op_class == OpClass::kNorm) parts.push_back({"final_layernorm", PartRows::kTokens, {op}, 1});
    if (op.op_class == OpClass::kLogits) parts.push_back({"lm_head", PartRows::kSampled, {op}, 1});
    if (op.op_class == OpClass::kSampling) parts.push_back({"sampler", PartRows::kSampled, {op}, 1});
  }
}

std::int64_t whole(double value) { return static_cast<std::int64_t>(std::llround(std::clamp(value, 0.0, 1e15))); }

model::Pass pass_at(const Part& part, std::span<const double> at) {
  if (part.rows != PartRows::kAttention) return model::decode(whole(at[0] / share_of_choices(part)), 1);
  model::Pass pass;
  if (at[0] > 0) pass.sequences.push_back({1, whole(at[0]), whole(at[0] + at[1]), 0});
  if (at[2] > 0) pass.sequences.push_back({whole(at[2]), 1, whole(at[3]), 1});
  return pass;
}

// Costs of work that is spread over the axes of a table.
class PartFloor final : public FloorAt {
 public:
  PartFloor(const Part& part, const model::Config& config, const DeviceRoof& roof)
      : part_(part), config_(config), roof_(roof), arithmetic_(part.ops.front().arithmetic) {}

  double ns(std::span<const double> at) const override {
    const model::Costs costs = costs_at(at);
    return std::max(compute_ns(costs), roof_.peaks.memory_ns(costs.bytes()).value_or(0));
  }

  // Clocks rise above those that data sheets quote, and what fits a cache need not come from memory again: a table may
  // be faster than the floor by the first, and by any factor of the memory's time by the second.
  bool impossible(std::span<const double> at, double time_ns) const override {
    constexpr double kSlack = 1.15;
    if (roof_.of_tables) return false;
    const model::Costs costs = costs_at(at);
    const bool cached = costs.bytes() <= static_cast<double>(roof_.on_chip_bytes);
    const double memory_ns = cached ? 0 : roof_.peaks.memory_ns(costs.bytes()).value_or(0);
    return time_ns * kSlack < std::max(compute_ns(costs), memory_ns);
  }

 private:
  double compute_ns(const model::Costs& costs) const {
    return costs.flops > 0 ? roof_.peaks.compute_ns(arithmetic_, costs.flops).value_or(0) : 0;
  }

  model::Costs costs_at(std::span<const double> at) const {
    return predict::costs_at(part_, config_, roof_.on_chip_bytes, at);
  }

  const Part& part_;
  const model::Config& config_;
  const DeviceRoof& roof_;
  std::string arithmetic_;
};

}  // namespace

double share_of_choices(const Part& part) {
  const auto& experts = part.ops.front().experts;
  if (!experts || experts->all <= 0) return 1;
  return experts->batches * static_cast<double>(experts->here) / static_cast<double>(experts->all);
}

std::vector<Part> parts_of(const model::Graph& graph) {
  std::vector<Part> parts;
  for (const Op& op : graph.first().ops) parts.push_back({"embedding", PartRows::kTokens, {op}, 1});
  for (const model::Graph::Group& group : graph.groups()) add_layer_parts(group, parts);
  add_last_parts(graph.last().ops, parts);
  return parts;
}

std::vector<std::string> part_names(const std::vector<Op>& layer_ops) {
  const LayerNames names(layer_ops);
  std::vector<std::string> all;
  for (std::size_t i = 0; i < layer_ops.size(); ++i) all.push_back(names.of(layer_ops[i], i));
  return all;
}

bool is_part_name(std::string_view name) {
  return std::ranges::find(kNames, name) != kNames.end() || name == "all_reduce" || name == "all_reduce_tokens";
}

model::Costs costs_at(const Part& part, const model::Config& config, std::int64_t on_chip_bytes,
                      std::span<const double> at) {
  const model::Amounts amounts(pass_at(part, at));
  model::Costs sum;
  for (const Op& op : part.ops) {
    model::Costs costs = model::inference_cost(op, config, amounts, {.on_chip_bytes = on_chip_bytes});
    // A table says how many experts were active; even routing would say how many are to be expected.
    const double expected = op.experts ? model::distinct_experts(*op.experts, amounts.rows(op.rows)) : 0;
    if (expected > 0 && at.size() > 1) costs.weight_bytes *= at[1] / expected;
    sum += costs;
  }
  return sum;
}

model::Pass pass_of(const Batch& batch) {
  model::Pass pass;
  std::int64_t sampled = std::max<std::int64_t>(0, batch.sampled - static_cast<std::int64_t>(batch.contexts.size()));
  for (const Chunk& chunk : batch.chunks) {
    pass.sequences.push_back({1, chunk.tokens, chunk.computed + chunk.tokens, sampled > 0 ? 1 : 0});
    if (sampled > 0) --sampled;
  }
  for (const std::int64_t context : batch.contexts) pass.sequences.push_back({1, 1, context, 1});
  return pass;
}

double floor_ns(const std::vector<Op>& ops, const model::Config& config, const model::Amounts& amounts,
                const DeviceRoof& roof) {
  model::Costs sum;
  for (const Op& op : ops) sum += model::inference_cost(op, config, amounts, {.on_chip_bytes = roof.on_chip_bytes});
  const double compute_ns = sum.flops > 0 ? roof.peaks.compute_ns(ops.front().arithmetic, sum.flops).value_or(0) : 0;
  return std::max(compute_ns, roof.peaks.memory_ns(sum.bytes()).value_or(0));
}

std::unique_ptr<FloorAt> floor_over_axes(const Part& part, const model::Config& config, const DeviceRoof& roof) {
  return std::make_unique<PartFloor>(part, config, roof);
}

}  // namespace llmprof::predict
