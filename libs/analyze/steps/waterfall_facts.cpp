#include <fmt/format.h>

#include <algorithm>

#include "analyze/model/model_passes.h"
#include "analyze/questions.h"
#include "analyze/rows_of.h"
#include "analyze/steps/waterfall.h"

namespace llmprof::analyze {

namespace {

struct OpCosts {
  OpFloor op;  // its floor is of one pass
  double flops = 0, bytes = 0, layers = 0;
  std::optional<double> compute_ns;
};

struct PassOfStage {
  std::optional<std::int64_t> pass_id;
  std::int64_t steps = 0;
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

Result<std::map<std::int64_t, std::vector<OpCosts>>> costs_by_pass(const trace::Run& run, const AnalysisContext& analysis) {
  std::map<std::int64_t, std::vector<OpCosts>> passes;
  if (!analysis.model) return passes;
  const std::map<std::string, model::OpClass> classes = classes_of(*analysis.model);
  LLMPROF_LET(const trace::ResultTable table, ask(run, "sql/waterfall_costs"));
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const RowView row{table, i};
    OpCosts costs{.op = {.op = row.text("op"), .in_layer = row.integer("in_layer") != 0},
                  .flops = row.real("flops"),
                  .bytes = row.real("bytes"),
                  .layers = row.real("layers"),
                  .compute_ns = row.maybe_real("compute_ns")};
    // What the graph does not name are several projections that one product did.
    const auto found = classes.find(costs.op.op);
    costs.op.op_class = found != classes.end() ? found->second : model::OpClass::kProjection;
    passes[row.integer("pass_id")].push_back(std::move(costs));
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
    const auto steps = static_cast<double>(pass.steps);
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
bool is_taken_apart(const trace::ResultTable& passes, const std::string& stage) {
  constexpr std::int64_t kLeastSteps = 3;
  if (has_formula(stage)) return true;
  if (stage == "load" || stage == "compile" || stage == "warm-up") return false;
  std::int64_t steps = 0;
  for (std::size_t i = 0; i < passes.rows.size(); ++i) {
    const RowView row{passes, i};
    if (row.text("stage") == stage) steps += row.integer("steps");
  }
  return steps >= kLeastSteps;
}

// In order of time.
std::vector<WaterfallFacts> stages_of(const trace::ResultTable& passes, const AnalysisContext& analysis, bool calls_recorded) {
  const bool on_cpu = analysis.devices.empty() || analysis.devices.front().kind == "cpu";
  std::vector<WaterfallFacts> stages;
  for (std::size_t i = 0; i < passes.rows.size(); ++i) {
    const std::string stage = RowView{passes, i}.text("stage");
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

Result<std::vector<Waterfall>> waterfalls(const trace::Run& run, const AnalysisContext& analysis, const Denominators& by) {
  LLMPROF_LET(const auto costs, costs_by_pass(run, analysis));
  LLMPROF_LET(const trace::ResultTable passes, ask(run, "sql/waterfall_passes"));
  LLMPROF_LET(const trace::ResultTable times, ask(run, "sql/waterfall_times"));
  LLMPROF_LET(const trace::ResultTable api, run.query("SELECT count(*) FROM (SELECT 1 FROM api LIMIT 1)"));
  std::vector<WaterfallFacts> stages = stages_of(passes, analysis, api.rows[0][0].as_int() > 0);
  std::vector<Waterfall> out;
  for (WaterfallFacts& facts : stages) {
    std::vector<PassOfStage> sampled, all;
    for (std::size_t i = 0; i < passes.rows.size(); ++i) {
      const RowView row{passes, i};
      if (row.text("stage") != facts.stage) continue;
      all.push_back({row.maybe_integer("pass_id"), row.integer("steps")});
      if (row.integer("sample") != 0) sampled.push_back(all.back());
    }
    if (!sampled.empty()) facts.quantity = "TPOT";
    const std::vector<PassOfStage>& counted = sampled.empty() ? all : sampled;
    for (const PassOfStage& pass : counted) facts.samples += pass.steps;
    for (std::size_t i = 0; i < times.rows.size(); ++i) {
      const RowView row{times, i};
      const std::optional<Owner> owner = owner_of(row.text("owner"));
      if (row.text("stage") != facts.stage || !owner || (!sampled.empty() && row.integer("sample") == 0)) continue;
      facts.times.push_back({*owner, row.text("op"), row.integer("time_ns") + row.integer("after_ns")});
    }
    add_floors(counted, costs, for_stage(by, facts.stage), facts);
    if (facts.samples > 0) out.push_back(waterfall_of(facts));
  }
  return out;
}

}  // namespace llmprof::analyze
