#include "analyze/requests/shares.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "analyze/passes/step_time.h"

namespace llmprof::analyze {

std::vector<std::int64_t> divided(std::int64_t total, std::span<const double> weights, double whole) {
  std::vector<std::int64_t> parts(weights.size(), 0);
  if (whole <= 0) return parts;
  double sum = 0;
  std::int64_t given = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    sum += weights[i];
    const double reach = std::min(sum / whole, 1.0) * static_cast<double>(total);
    // A double holds a step's nanoseconds exactly (2^53 ns are 104 days).
    const auto until = std::clamp<std::int64_t>(std::llround(reach), given, total);
    parts[i] = until - given;
    given = until;
  }
  return parts;
}

namespace {

using trace::StepMemberRow;
using Column = std::int64_t StepMemberRow::*;

class Divider {
 public:
  Divider(std::int64_t step_id, const StepMembers& step) : step_(step) {
    for (const Member& member : step.members) {
      rows_.push_back({.step_id = step_id,
                       .request_id = member.request_id,
                       .tokens = member.tokens,
                       .context = member.context,
                       .prefill = member.prefill,
                       .sampled = member.sampled});
      tokens_.push_back(static_cast<double>(member.tokens));
      pairs_.push_back(member.pairs());
      sampled_.push_back(member.sampled ? 1 : 0);
      equal_.push_back(1);
    }
    const std::int64_t tokens = step.tokens();
    padded_ = std::max(step.padded, tokens);
    rows_.push_back({.step_id = step_id, .tokens = padded_ - tokens});
  }

  void by_tokens(std::int64_t ns, Column column) { divide(ns, tokens_, static_cast<double>(padded_), column); }
  void by_pairs(std::int64_t ns) { divide(ns, pairs_, sum(pairs_), &StepMemberRow::attention_ns); }
  void by_sampled(std::int64_t ns) { divide(ns, sampled_, sum(sampled_), &StepMemberRow::head_ns); }
  void equally(std::int64_t ns, Column column) { divide(ns, equal_, sum(equal_), column); }
  void to_engine(std::int64_t ns, Column column) { rows_.back().*column += ns; }

  std::vector<StepMemberRow> finish() {
    for (StepMemberRow& row : rows_) {
      row.time_ns = row.products_ns + row.weights_ns + row.attention_ns + row.head_ns + row.copies_ns + row.idle_ns +
                    row.other_ns;
    }
    return std::move(rows_);
  }

 private:
  static double sum(const std::vector<double>& values) {
    double sum = 0;
    for (const double value : values) sum += value;
    return sum;
  }
  void divide(std::int64_t ns, const std::vector<double>& weights, double whole, Column column) {
    const std::vector<std::int64_t> parts = divided(ns, weights, whole);
    std::int64_t rest = ns;
    for (std::size_t i = 0; i < parts.size(); ++i) rows_[i].*column += parts[i], rest -= parts[i];
    rows_.back().*column += rest;
  }

  const StepMembers& step_;
  std::vector<StepMemberRow> rows_;
  std::vector<double> tokens_, pairs_, sampled_, equal_;
  std::int64_t padded_ = 0;
};

DividedBy division_of(const model::Op& op) {
  if (op.attention) return DividedBy::kPairs;
  const bool head = op.op_class == model::OpClass::kLogits || op.op_class == model::OpClass::kSampling;
  return head || op.rows == model::Rows::kSampled ? DividedBy::kSampled : DividedBy::kTokens;
}

// By the words that programs use, where no model says more.
DividedBy division_by_name(std::string_view op) {
  const auto has = [&](std::string_view word) { return op.find(word) != std::string_view::npos; };
  if (has("lm_head") || has("sampl") || has("logits")) return DividedBy::kSampled;
  const std::string_view last = op.substr(op.rfind('.') == std::string_view::npos ? 0 : op.rfind('.') + 1);
  if (last == "core" || last == "attn" || last == "attention" || last == "core_attention" || last == "sdpa")
    return DividedBy::kPairs;
  return DividedBy::kTokens;
}

}  // namespace

DividedBy DivisionOfOps::of(trace::Name op) {
  const auto [found, fresh] = known_.try_emplace(op.id, DividedBy::kTokens);
  if (!fresh || op.id == 0) return found->second;
  const std::string_view name = strings_.text(op);
  found->second = division_by_name(name);
  if (graph_ == nullptr) return found->second;
  const auto look = [&](const std::vector<model::Op>& ops) {
    for (const model::Op& each : ops) {
      if (each.name == name) found->second = division_of(each);
    }
  };
  look(graph_->first().ops);
  look(graph_->last().ops);
  for (const model::Graph::Group& group : graph_->groups()) look(group.ops);
  return found->second;
}

std::vector<StepMemberRow> shares_of(std::int64_t step_id, const StepMembers& members,
                                     std::span<const trace::StepTimeRow> rows, DivisionOfOps& ops,
                                     const WeightTimes& weights, const trace::Strings& strings) {
  Divider divider(step_id, members);
  std::unordered_map<std::uint32_t, double> left = weights;  // an operator's time comes as several rows
  for (const trace::StepTimeRow& row : rows) {
    const std::string_view owner = strings.text(row.owner);
    const std::int64_t ns = row.time_ns;
    if (owner == owner_name(Owner::kOtherKernel)) {
      divider.to_engine(ns, &StepMemberRow::other_ns);
    } else if (owner == owner_name(Owner::kCopy)) {
      divider.by_tokens(ns, &StepMemberRow::copies_ns);
    } else if (owner != owner_name(Owner::kKernel) && owner != owner_name(Owner::kHost)) {
      divider.equally(ns, &StepMemberRow::idle_ns);
    } else if (const DividedBy work = ops.of(row.op); work == DividedBy::kPairs) {
      divider.by_pairs(ns);
    } else if (work == DividedBy::kSampled) {
      divider.by_sampled(ns);
    } else {
      std::int64_t reading = 0;
      if (const auto least = left.find(row.op.id); least != left.end()) {
        reading = std::min(ns, static_cast<std::int64_t>(least->second));
        least->second -= static_cast<double>(reading);
      }
      divider.equally(reading, &StepMemberRow::weights_ns);
      divider.by_tokens(ns - reading, &StepMemberRow::products_ns);
    }
  }
  return divider.finish();
}

void cost_members(const model::Graph& graph, std::int64_t on_chip_bytes, std::span<StepMemberRow> members) {
  model::Conditions conditions;
  conditions.on_chip_bytes = on_chip_bytes;
  model::Pass all;
  std::int64_t count = 0;
  for (const StepMemberRow& row : members) {
    if (!row.request_id) continue;
    all.sequences.push_back({1, row.tokens, row.context, row.sampled ? 1 : 0});
    ++count;
  }
  if (count == 0) return;
  const double weights = model::total(graph, all, conditions).weight_bytes / static_cast<double>(count);
  for (StepMemberRow& row : members) {
    if (!row.request_id) continue;
    const model::Costs alone =
        model::total(graph, model::mixed({{1, row.tokens, row.context, row.sampled ? 1 : 0}}), conditions);
    row.flops = alone.flops;
    row.bytes = weights + alone.kv_bytes + alone.activation_bytes;
  }
}

namespace {

// Steps without prompts: durations by how many requests decode.
class PlainSteps {
 public:
  void add(std::int64_t decodes, std::int64_t ns) { durations_[decodes].push_back(ns); }
  void finish() {
    for (auto& [decodes, all] : durations_) {
      const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
      std::nth_element(all.begin(), middle, all.end());
      medians_[decodes] = *middle;
    }
  }
  // 0: there are none.
  std::int64_t nearest(std::int64_t decodes) const {
    const auto above = medians_.lower_bound(decodes);
    if (above == medians_.end()) return medians_.empty() ? 0 : medians_.rbegin()->second;
    if (above == medians_.begin() || above->first == decodes) return above->second;
    const auto below = std::prev(above);
    return decodes - below->first <= above->first - decodes ? below->second : above->second;
  }

 private:
  std::map<std::int64_t, std::vector<std::int64_t>> durations_;
  std::map<std::int64_t, std::int64_t> medians_;
};

struct StepKind {
  std::int64_t decodes = 0, prompt_tokens = 0, most_tokens = 0;
  trace::OptionalId longest;  // the request with most tokens of a prompt
};

}  // namespace

void add_stalls(const std::vector<std::int64_t>& duration_ns, const std::vector<bool>& warm_up,
                std::vector<StepMemberRow>& rows) {
  std::unordered_map<std::int64_t, StepKind> kinds;
  for (const StepMemberRow& row : rows) {
    if (!row.request_id) continue;
    StepKind& kind = kinds[row.step_id];
    if (!row.prefill) {
      ++kind.decodes;
      continue;
    }
    kind.prompt_tokens += row.tokens;
    if (row.tokens > kind.most_tokens) kind.most_tokens = row.tokens, kind.longest = row.request_id;
  }
  const auto at = [](std::int64_t step_id) { return static_cast<std::size_t>(step_id - 1); };
  PlainSteps plain;
  for (const auto& [step_id, kind] : kinds) {
    if (kind.prompt_tokens == 0 && !warm_up[at(step_id)]) plain.add(kind.decodes, duration_ns[at(step_id)]);
  }
  plain.finish();
  for (StepMemberRow& row : rows) {
    if (!row.request_id || row.prefill) continue;
    const StepKind& kind = kinds[row.step_id];
    const std::int64_t usual = plain.nearest(kind.decodes);
    if (usual == 0) continue;
    row.stalled_ns = kind.prompt_tokens == 0 ? 0 : std::max<std::int64_t>(duration_ns[at(row.step_id)] - usual, 0);
    if (*row.stalled_ns > 0) row.stalled_by = kind.longest;
  }
}

StepShares::OfProcess& StepShares::of_process(std::int64_t process_id) {
  const auto found = processes_.find(process_id);
  if (found != processes_.end()) return found->second;
  const model::Graph* graph = analysis_.graph_of(process_id);
  OfProcess made{graph, DivisionOfOps(graph, strings_), {}};
  const PeakRate* memory = analysis_.device_ids.empty() ? nullptr : analysis_.memory_peak(analysis_.device_ids.front());
  const bool moves = graph != nullptr && memory != nullptr && memory->value > 0 &&
                     model::weights_read_bytes(*graph) > static_cast<double>(analysis_.cache_bytes());
  if (moves) {
    for (const model::OpCost& op : model::analyze_by_op(*graph, model::decode(1, 1), {}))
      made.weights[strings_.intern(op.op).id] += op.weight_bytes / memory->value * 1e9;
  }
  return processes_.emplace(process_id, std::move(made)).first->second;
}

void StepShares::add(const trace::StepTimeRow& row) {
  if (members_.empty()) return;
  if (!open_.empty() && open_.back().step_id != row.step_id) close();
  open_.push_back(row);
}

void StepShares::close() {
  const auto step = static_cast<std::size_t>(open_.front().step_id - 1);
  if (const StepMembers& members = members_[step]; !members.members.empty()) {
    OfProcess& process = of_process(steps_[step].process_id);
    std::vector<StepMemberRow> rows =
        shares_of(open_.front().step_id, members, open_, process.ops, process.weights, strings_);
    if (process.graph != nullptr) cost_members(*process.graph, analysis_.cache_bytes(), rows);
    rows_.insert(rows_.end(), rows.begin(), rows.end());
  }
  open_.clear();
}

std::vector<StepMemberRow> StepShares::finish(const std::vector<bool>& warm_up) {
  if (!open_.empty()) close();
  std::vector<std::int64_t> durations;
  durations.reserve(steps_.size());
  for (const Step& step : steps_) durations.push_back(step.end_ns - step.turn());
  add_stalls(durations, warm_up, rows_);
  return std::move(rows_);
}

}  // namespace llmprof::analyze
