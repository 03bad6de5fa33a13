#include "analyze/steps/waterfall.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "analyze/model/model_passes.h"
#include "analyze/questions.h"
#include "analyze/rows_of.h"

namespace llmprof::analyze {

namespace {

using OwnerTimes = std::array<std::int64_t, kOwners>;

// Operators whose time was measured together: one, or a part of the model with those inside it that were not seen
// alone.
struct Group {
  std::int64_t kernel_ns = 0, host_ns = 0;
  double floor_ns = 0, largest_floor_ns = -1;
  bool known = false;  // some operator of the model belongs to it
  model::OpClass op_class = model::OpClass::kElementwise;

  std::int64_t measured_ns() const { return kernel_ns + host_ns; }
};
using Groups = std::map<std::string, Group>;

struct ClassTotal {
  std::int64_t measured_ns = 0, kernel_ns = 0, floor_ns = 0;
};

std::int64_t whole(double ns) { return static_cast<std::int64_t>(std::llround(ns)); }

// "self_attn.q_proj" -> "self_attn" -> "layers" (in a layer) -> "".
std::string around(const std::string& op, const OpFloor& of, const std::string& layer_prefix) {
  if (const std::size_t dot = op.rfind('.'); dot != std::string::npos) return op.substr(0, dot);
  return of.in_layer && op != layer_prefix ? layer_prefix : "";
}

Groups groups_of(const WaterfallFacts& facts) {
  Groups groups;
  for (const OwnedTime& time : facts.times) {
    if (time.op.empty()) continue;
    if (time.owner == Owner::kKernel) groups[time.op].kernel_ns += time.ns;
    if (time.owner == Owner::kHost) groups[time.op].host_ns += time.ns;
  }
  return groups;
}

// Gives every operator's floor to the smallest part that was seen; returns the floors of those in no such part.
double give_floors(const WaterfallFacts& facts, Groups& groups) {
  double not_seen_ns = 0;
  for (const OpFloor& floor : facts.operators) {
    auto group = groups.find(floor.op);
    for (std::string name = floor.op; group == groups.end() && !name.empty();) {
      name = around(name, floor, facts.layer_prefix);
      group = groups.find(name);
    }
    if (group == groups.end()) {
      not_seen_ns += floor.floor_ns;
      continue;
    }
    Group& into = group->second;
    into.known = true;
    into.floor_ns += floor.floor_ns;
    // A block around the rotation also holds copies for attention and the like: not all of it is the rotation.
    const bool own = floor.op == group->first;
    const bool rotates = floor.op_class == model::OpClass::kRope && !own;
    if (own || floor.floor_ns > into.largest_floor_ns)
      into.op_class = rotates ? model::OpClass::kElementwise : floor.op_class;
    into.largest_floor_ns = own ? INFINITY : std::max(into.largest_floor_ns, floor.floor_ns);
  }
  return not_seen_ns;
}

// Whether operators of the model lie inside a part: then its own code is what connects them.
bool contains_operators(const WaterfallFacts& facts, const std::string& part) {
  return std::any_of(facts.operators.begin(), facts.operators.end(), [&](const OpFloor& floor) {
    return floor.op.starts_with(part + ".") || (floor.in_layer && part == facts.layer_prefix);
  });
}

class Builder {
 public:
  explicit Builder(const WaterfallFacts& facts) : facts_(facts) {
    for (const OwnedTime& time : facts.times) {
      owners_[static_cast<std::size_t>(time.owner)] += time.ns;
      out_.measured_ns += time.ns;
    }
    out_.stage = facts.stage;
    out_.quantity = facts.quantity;
    out_.samples = facts.samples;
    out_.on_cpu = facts.on_cpu;
  }

  Waterfall build() {
    add_losses_around_kernels();
    if (facts_.floor_ns) {
      add_operators();
    } else {
      out_.why = facts_.floor_why;
      add("kernels", owned(Owner::kKernel) + owned(Owner::kHost));
      add("residual", 0);
    }
    return std::move(out_);
  }

 private:
  std::int64_t owned(Owner owner) const { return owners_[static_cast<std::size_t>(owner)]; }

  WaterfallTerm& add(std::string name, std::optional<std::int64_t> ns, std::string why = "") {
    out_.terms.push_back({.name = std::move(name), .op_class = "", .ns = ns, .why = std::move(why)});
    return out_.terms.back();
  }

  void add_losses_around_kernels() {
    if (facts_.quantity == "TPOT") add("between_steps", owned(Owner::kBetween));
    add("gaps", owned(Owner::kGap));
    if (!facts_.on_cpu || owned(Owner::kQueued) > 0) add("queued", owned(Owner::kQueued));
    const std::int64_t waits = owned(Owner::kWait);
    if (facts_.waits_known || waits > 0) {
      add("waits", waits);
    } else {
      add("waits", std::nullopt, "no calls that wait were recorded; such time is in the gaps");
    }
    add("copies", owned(Owner::kCopy));
    add("clock", std::nullopt, "no telemetry");
    if (owned(Owner::kOtherKernel) > 0) add("other_kernels", owned(Owner::kOtherKernel));
  }

  void add_operators() {
    Groups groups = groups_of(facts_);
    const std::int64_t not_seen_ns = whole(give_floors(facts_, groups));
    std::map<model::OpClass, ClassTotal> above, faster;
    // What names no operator is not matched; the groups take their part out of it.
    std::int64_t unmatched_ns = owned(Owner::kKernel), residual_ns = owned(Owner::kHost);
    std::int64_t connecting_ns = 0, floors_ns = not_seen_ns;
    for (const auto& [name, group] : groups) {
      if (!group.known && contains_operators(facts_, name)) {
        connecting_ns += group.host_ns;
        residual_ns -= group.host_ns;
      }
      if (!group.known) continue;
      unmatched_ns -= group.kernel_ns;
      residual_ns -= group.host_ns;
      const std::int64_t floor_ns = whole(group.floor_ns);
      floors_ns += floor_ns;
      ClassTotal& total = (group.measured_ns() < floor_ns ? faster : above)[group.op_class];
      total.measured_ns += group.measured_ns();
      total.kernel_ns += group.kernel_ns;
      total.floor_ns += floor_ns;
    }
    if (connecting_ns > 0) term("gaps").ns = *term("gaps").ns + connecting_ns;
    add_classes("above_floor", above);
    if (unmatched_ns > 0) add("unmatched_kernels", unmatched_ns);
    add("residual", residual_ns);
    add("one_after_another", floors_ns - whole(*facts_.floor_ns));
    add_classes("faster_than_floor", faster);
    if (not_seen_ns > 0) add("not_seen", -not_seen_ns);
    out_.floor_ns = whole(*facts_.floor_ns);
  }

  void add_classes(const std::string& name, const std::map<model::OpClass, ClassTotal>& totals) {
    std::vector<WaterfallTerm> terms;
    for (const auto& [op_class, total] : totals) {
      terms.push_back({.name = name,
                       .op_class = std::string(model::class_name(op_class)),
                       .ns = total.measured_ns - total.floor_ns,
                       .measured_ns = total.measured_ns,
                       .kernel_ns = total.kernel_ns,
                       .floor_ns = total.floor_ns});
    }
    std::stable_sort(terms.begin(), terms.end(),
                     [](const auto& a, const auto& b) { return std::abs(*a.ns) > std::abs(*b.ns); });
    out_.terms.insert(out_.terms.end(), terms.begin(), terms.end());
  }

  WaterfallTerm& term(std::string_view name) {
    return *std::find_if(out_.terms.begin(), out_.terms.end(), [&](const WaterfallTerm& t) { return t.name == name; });
  }

  const WaterfallFacts& facts_;
  OwnerTimes owners_{};
  Waterfall out_;
};

}  // namespace

Waterfall waterfall_of(const WaterfallFacts& facts) { return Builder(facts).build(); }

namespace {

struct OpCosts {
  OpFloor op;  // its floor is of one pass
  double flops = 0, bytes = 0, layers = 0;
  std::optional<double> compute_ns;
};

struct CostRow {
  std::int64_t pass_id = 0;
  std::string op;
  bool in_layer = false;
  double flops = 0, bytes = 0, layers = 0;
  std::optional<double> compute_ns;
};

struct PassOfStage {
  std::string stage;
  bool sample = false;
  std::optional<std::int64_t> pass_id;
  std::int64_t steps = 0, first_ns = 0;
};

struct TimeRow {
  std::string stage;
  bool sample = false;
  std::string owner, op;
  std::int64_t time_ns = 0, after_ns = 0;
};

std::map<std::string, model::OpClass> classes_of(const model::Graph& graph) {
  std::map<std::string, model::OpClass> classes;
  const auto add = [&](const model::Graph::Group& group) {
    for (const model::Op& op : group.ops) classes[op.name] = op.op_class;
  };
  add(graph.first());
  for (const model::Graph::Group& group : graph.groups()) add(group);
  add(graph.last());
  return classes;
}

Result<std::map<std::int64_t, std::vector<OpCosts>>> costs_by_pass(const trace::Run& run,
                                                                   const AnalysisContext& analysis) {
  std::map<std::int64_t, std::vector<OpCosts>> passes;
  if (!analysis.model) return passes;
  const std::map<std::string, model::OpClass> classes = classes_of(*analysis.model);
  LLMPROF_LET(const std::vector<CostRow> rows, ask_rows<CostRow>(run, "waterfall_costs"));
  for (const CostRow& row : rows) {
    OpCosts costs{.op = {.op = row.op, .in_layer = row.in_layer},
                  .flops = row.flops,
                  .bytes = row.bytes,
                  .layers = row.layers,
                  .compute_ns = row.compute_ns};
    // What the graph does not name are several projections that one product did.
    const auto found = classes.find(costs.op.op);
    costs.op.op_class = found != classes.end() ? found->second : model::OpClass::kProjection;
    passes[row.pass_id].push_back(std::move(costs));
  }
  return passes;
}

void add_floor(const OpFloor& op, double floor_ns, std::vector<OpFloor>& operators) {
  const auto same =
      std::find_if(operators.begin(), operators.end(), [&](const OpFloor& other) { return other.op == op.op; });
  if (same != operators.end()) {
    same->floor_ns += floor_ns;
  } else {
    operators.push_back(op);
    operators.back().floor_ns = floor_ns;
  }
}

// Floors of the operators and of the steps as a whole; unknown if they are unknown for one step.
void add_floors(const std::vector<PassOfStage>& passes, const std::map<std::int64_t, std::vector<OpCosts>>& costs,
                const Denominators& by, WaterfallFacts& facts) {
  std::int64_t unknown = 0;
  double floor = 0;
  for (const PassOfStage& pass : passes) {
    const auto found = pass.pass_id ? costs.find(*pass.pass_id) : costs.end();
    if (found == costs.end()) {
      unknown += pass.steps;
      continue;
    }
    const double steps = pass.steps;
    double flops = 0, bytes = 0;
    std::optional<double> compute = 0.0;
    for (const OpCosts& op : found->second) {
      flops += op.layers * op.flops;
      bytes += op.layers * op.bytes;
      compute = compute && op.compute_ns ? std::optional(*compute + op.layers * *op.compute_ns) : std::nullopt;
      const std::optional<double> least = floor_ns(op.flops, op.bytes, by, op.compute_ns);
      add_floor(op.op, steps * op.layers * least.value_or(0), facts.operators);
    }
    floor += steps * floor_ns(flops, bytes, by, compute).value_or(0);
  }
  if (!by.cost_why.empty()) {
    facts.floor_why = by.cost_why;
  } else if (unknown > 0) {
    facts.floor_why = fmt::format("{} of {} steps do not say their batch, tokens and context", unknown, facts.samples);
  } else if (!by.peak_flops || !by.peak_bandwidth) {
    facts.floor_why = "no peak FLOP/s or bandwidth is known for this device and type";
  } else {
    facts.floor_ns = floor;
  }
}

std::optional<Owner> owner_of(const std::string& name) {
  for (std::size_t i = 0; i < kOwners; ++i) {
    if (owner_name(static_cast<Owner>(i)) == name) return static_cast<Owner>(i);
  }
  return std::nullopt;
}

// Stages that have formulas, and others that repeat, by whatever name.
bool is_taken_apart(const std::vector<PassOfStage>& passes, const std::string& stage) {
  constexpr std::int64_t kLeastSteps = 3;
  if (has_formula(stage)) return true;
  if (stage == "load" || stage == "compile" || stage == "warm-up") return false;
  std::int64_t steps = 0;
  for (const PassOfStage& pass : passes) steps += pass.stage == stage ? pass.steps : 0;
  return steps >= kLeastSteps;
}

// In order of time.
std::vector<WaterfallFacts> stages_of(const std::vector<PassOfStage>& passes, const AnalysisContext& analysis,
                                      bool calls_recorded) {
  const bool on_cpu = analysis.devices.empty() || analysis.devices.front().kind == "cpu";
  std::vector<WaterfallFacts> stages;
  for (const PassOfStage& pass : passes) {
    const std::string& stage = pass.stage;
    if (!is_taken_apart(passes, stage) || (!stages.empty() && stages.back().stage == stage)) continue;
    WaterfallFacts facts{.stage = stage, .quantity = stage == "prefill" ? "TTFT" : "step time"};
    facts.on_cpu = on_cpu;
    facts.waits_known = on_cpu || calls_recorded;  // nobody waits for a CPU
    if (analysis.model) facts.layer_prefix = analysis.model->layer_prefix();
    stages.push_back(std::move(facts));
  }
  return stages;
}

}  // namespace

Result<std::vector<Waterfall>> waterfalls(const trace::Run& run, const AnalysisContext& analysis,
                                          const Denominators& by) {
  LLMPROF_LET(const auto costs, costs_by_pass(run, analysis));
  LLMPROF_LET(const std::vector<PassOfStage> passes, ask_rows<PassOfStage>(run, "waterfall_passes"));
  LLMPROF_LET(const std::vector<TimeRow> times, ask_rows<TimeRow>(run, "waterfall_times"));
  LLMPROF_LET(const std::int64_t calls, ask_number(run, "SELECT count(*) FROM (SELECT 1 FROM api LIMIT 1)"));
  std::vector<WaterfallFacts> stages = stages_of(passes, analysis, calls > 0);
  std::vector<Waterfall> out;
  for (WaterfallFacts& facts : stages) {
    std::vector<PassOfStage> sampled, all;
    for (const PassOfStage& pass : passes) {
      if (pass.stage != facts.stage) continue;
      all.push_back(pass);
      if (pass.sample) sampled.push_back(pass);
    }
    if (!sampled.empty()) facts.quantity = "TPOT";
    const std::vector<PassOfStage>& counted = sampled.empty() ? all : sampled;
    for (const PassOfStage& pass : counted) facts.samples += pass.steps;
    for (const TimeRow& row : times) {
      const std::optional<Owner> owner = owner_of(row.owner);
      if (row.stage != facts.stage || !owner || (!sampled.empty() && !row.sample)) continue;
      facts.times.push_back({*owner, row.op, row.time_ns + row.after_ns});
    }
    add_floors(counted, costs, for_stage(by, facts.stage), facts);
    if (facts.samples > 0) out.push_back(waterfall_of(facts));
  }
  return out;
}

}  // namespace llmprof::analyze
