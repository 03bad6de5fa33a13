#include "predict/run/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace llmprof::predict {
namespace {

constexpr std::size_t kNoRow = SIZE_MAX;

// Rows of explain() that one kind of layer has: parts are named once in it.
std::vector<std::string> distinct_parts(const model::Graph::Group& group) {
  const std::vector<std::string> names = part_names(group.ops);
  std::vector<std::string> distinct;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!model::used(group.ops[i], model::PassKind::kInference)) continue;
    if (std::ranges::find(distinct, names[i]) == distinct.end()) distinct.push_back(names[i]);
  }
  return distinct;
}

// What operators of one call share its time by: floors, or their work where no peak is known.
double weight_of(const model::Op& op, const model::Config& config, const model::Amounts& amounts,
                 const DeviceRoof& roof) {
  if (const double ns = floor_ns({op}, config, amounts, roof); ns > 0) return ns;
  const model::Costs costs = model::inference_cost(op, config, amounts, {.on_chip_bytes = roof.on_chip_bytes});
  return costs.bytes() > 0 ? costs.bytes() : costs.flops;
}

}  // namespace

Result<StepLayout> StepLayout::make(const TableStepCost& cost, Detail detail) {
  const StepCostInput& input = cost.input();
  LLMPROF_LET(const model::Config shard, model::shard(input.config, input.parallel, {}));
  StepLayout layout(cost);
  layout.graph_ = std::make_shared<const model::Graph>(shard);
  if (detail == Detail::kLayers) {
    layout.add_layers();
  } else {
    layout.add_parts();
  }
  return layout;
}

std::size_t StepLayout::row_of(std::string_view part, std::size_t from, std::size_t until) const {
  const auto& entries = cost_->entries();
  for (std::size_t row = from; row < std::min(until, entries.size()); ++row) {
    if (entries[row]->part.name == part) return row;
  }
  return kNoRow;
}

void StepLayout::add_slot(std::string module, std::string kernel, std::size_t row, const model::Op* op) {
  slots_.push_back({.place = static_cast<std::uint32_t>(places_.size()), .row = row, .first = slots_.size(), .op = op});
  places_.push_back({std::move(module), std::move(kernel)});
  ++kernels_;
}

void StepLayout::add_collective(std::string_view name) {
  if (const std::size_t row = row_of(name, 0, SIZE_MAX); row != kNoRow) add_slot("", std::string(name), row, nullptr);
}

// Of rows with the ranks that hold other experts: one of the two.
void StepLayout::add_exchange() {
  add_collective("all_to_all");
  add_collective("gather_scatter");
}

void StepLayout::add_outside(const model::Op& op, std::size_t row) {
  if (row == kNoRow) return;
  add_slot(op.name, cost_->entries()[row]->part.name, row, &op);
}

// One layer. Operators of one part are one kernel, where its first operator stands; norms are called one by one.
void StepLayout::add_group(const model::Graph::Group& group, std::int64_t layer, std::size_t first_row) {
  const std::vector<std::string> names = part_names(group.ops);
  const std::size_t until = first_row + distinct_parts(group).size();
  std::vector<bool> done(group.ops.size(), false);
  for (std::size_t i = 0; i < group.ops.size(); ++i) {
    if (done[i] || !model::used(group.ops[i], model::PassKind::kInference)) continue;
    const std::size_t row = row_of(names[i], first_row, until);
    if (row == kNoRow) continue;  // a router that is part of its experts' table
    if (names[i] == "moe") add_exchange();
    const std::size_t first = slots_.size();
    for (std::size_t j = i; j < group.ops.size(); ++j) {
      const bool same = names[j] == names[i] && (j == i || names[i] != "layernorm");
      if (!same || !model::used(group.ops[j], model::PassKind::kInference)) continue;
      done[j] = true;
      add_slot(fmt::format("{}.{}.{}", graph_->layer_prefix(), layer, group.ops[j].name), names[j], row, &group.ops[j]);
    }
    for (std::size_t slot = first; slot < slots_.size(); ++slot) {
      slots_[slot].first = first, slots_[slot].of = slots_.size() - first;
    }
    kernels_ -= static_cast<std::int64_t>(slots_.size() - first) - 1;
    if (names[i] == "moe") add_exchange();
    if (names[i] == "o_proj") add_collective("all_reduce");
  }
  add_collective("all_reduce");
}

// Entries stand in the order of parts_of(): before the layers, kind by kind of layer, behind the layers.
void StepLayout::add_layers() {
  std::size_t row = 0;
  for (const model::Op& op : graph_->first().ops) {
    add_outside(op, row < cost_->entries().size() && cost_->entries()[row]->part.name == "embedding" ? row++ : kNoRow);
  }
  if (!graph_->first().ops.empty()) add_collective("all_reduce");
  std::vector<std::size_t> first_row;
  for (const model::Graph::Group& group : graph_->groups()) {
    first_row.push_back(row);
    const std::vector<std::string> parts = distinct_parts(group);
    for (const std::string& part : parts) {
      const auto& entries = cost_->entries();
      if (row < entries.size() && entries[row]->part.name == part) ++row;
    }
  }
  const auto& kinds = graph_->group_of_layer();
  for (std::size_t layer = 0; layer < kinds.size(); ++layer) {
    add_group(graph_->groups()[kinds[layer]], graph_->config().first_layer + static_cast<std::int64_t>(layer),
              first_row[kinds[layer]]);
  }
  for (const model::Op& op : graph_->last().ops) {
    if (!model::used(op, model::PassKind::kInference)) continue;
    const bool here = row < cost_->entries().size() && !cost_->entries()[row]->part.ops.empty() &&
                      cost_->entries()[row]->part.ops.front().name == op.name;
    add_outside(op, here ? row++ : kNoRow);
  }
}

void StepLayout::add_parts() {
  const auto& entries = cost_->entries();
  const auto outside = [&](const Part& part) {
    return part.name == "embedding" || part.name == "final_layernorm" || part.name == "lm_head" ||
           part.name == "sampler";
  };
  for (std::size_t row = 0; row < entries.size(); ++row) {
    const Part& part = entries[row]->part;
    const bool collective = part.ops.empty();
    add_slot(collective      ? ""
             : outside(part) ? part.ops.front().name
                             : graph_->layer_prefix(),
             part.name, row, collective ? nullptr : &part.ops.front());
    slots_.back().calls = static_cast<double>(part.calls);
  }
}

std::vector<Execution> StepLayout::lay_out(const Batch& batch, const std::vector<OpTime>& times) const {
  const model::Amounts amounts(pass_of(batch));
  const DeviceRoof& roof = cost_->input().roof;
  double gaps_ns = 0;
  for (std::size_t row = cost_->entries().size(); row < times.size(); ++row) gaps_ns += times[row].ns;
  const double gap_ns = kernels_ > 0 ? gaps_ns / static_cast<double>(kernels_) : 0;
  std::map<const model::Op*, double> weights;  // layers of one kind have the same operators
  const auto weight = [&](const model::Op* op) {
    const auto [found, fresh] = weights.try_emplace(op, 0);
    if (fresh) found->second = weight_of(*op, graph_->config(), amounts, roof);
    return found->second;
  };
  std::vector<Execution> work;
  double at_ns = 0;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const Slot& slot = slots_[i];
    const OpTime& row = times[slot.row];
    double share = 1;
    if (slot.of > 1) {
      double sum = 0;
      for (std::size_t j = slot.first; j < slot.first + slot.of; ++j) sum += weight(slots_[j].op);
      share = sum > 0 ? weight(slot.op) / sum : 1.0 / static_cast<double>(slot.of);
    }
    if (i == slot.first) at_ns += gap_ns;
    const double ns = row.calls > 0 ? row.ns / static_cast<double>(row.calls) * slot.calls * share : 0;
    if (ns > 0) work.push_back({slot.place, at_ns, ns});
    at_ns += ns;
  }
  return work;
}

}  // namespace llmprof::predict
