#include "analyze/parts.h"

#include <algorithm>
#include <map>

#include "analyze/questions.h"
#include "analyze/rows_of.h"

namespace llmprof::analyze {
namespace {

using StageAndName = std::pair<std::string, std::string>;

struct Cost {
  double flops = 0, bytes = 0;
};

Result<std::map<StageAndName, Cost>> module_costs(const trace::Run& run) {
  LLMPROF_LET(const trace::ResultTable table, ask(run, "sql/module_costs"));
  std::map<StageAndName, Cost> costs;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const RowView row{table, i};
    costs[{row.text("stage"), row.text("module")}] = {row.real("flops"), row.real("bytes")};
  }
  return costs;
}

// An operator is the sum of its modules; its cost is known only if the cost of each of them is.
void add_module(const Part& module, const std::string& name, bool first, Part& op) {
  op.name = name;
  op.stage = module.stage;
  op.calls += module.calls;
  op.total_ns += module.total_ns;
  op.self_ns += module.self_ns;
  op.kernel_ns += module.kernel_ns;
  const auto add = [&](std::optional<double>& sum, const std::optional<double>& more) {
    if (first) {
      sum = more;
    } else if (sum && more) {
      *sum += *more;
    } else {
      sum.reset();
    }
  };
  add(op.efficiency.flops, module.efficiency.flops);
  add(op.efficiency.bytes, module.efficiency.bytes);
}

void complete_part(Part& part, const std::map<std::string, std::int64_t>& stage_ns, const Denominators& by) {
  const auto stage = stage_ns.find(part.stage);
  if (stage != stage_ns.end() && stage->second > 0) {
    part.share = static_cast<double>(part.self_ns) / static_cast<double>(stage->second);
  }
  if (!part.efficiency.flops && by.cost_why.empty()) part.efficiency.why = "not a part of the model analysis, or of unknown size";
  complete(part.efficiency, static_cast<double>(part.total_ns), by);
}

}  // namespace

Result<void> fill_parts(const trace::Run& run, const Denominators& by, Summary& summary) {
  LLMPROF_LET(const auto costs, module_costs(run));
  LLMPROF_LET(const trace::ResultTable table, ask(run, "sql/modules"));
  std::map<StageAndName, Part> ops;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const RowView row{table, i};
    Part module{.name = row.text("module"), .stage = row.text("stage"), .calls = row.integer("calls"),
                .total_ns = row.integer("total_ns"), .self_ns = row.integer("self_ns"), .kernel_ns = row.integer("kernel_ns")};
    if (const auto cost = costs.find({module.stage, module.name}); cost != costs.end()) {
      module.efficiency.flops = cost->second.flops;
      module.efficiency.bytes = cost->second.bytes;
    }
    const auto [op, fresh] = ops.try_emplace({module.stage, row.text("op")});
    add_module(module, row.text("op"), fresh, op->second);
    summary.modules.push_back(std::move(module));
  }
  for (auto& [name, op] : ops) summary.ops.push_back(std::move(op));
  std::stable_sort(summary.ops.begin(), summary.ops.end(), [](const Part& a, const Part& b) { return a.self_ns > b.self_ns; });
  std::map<std::string, std::int64_t> stage_ns;
  for (const Stage& stage : summary.stages) stage_ns[stage.name] = stage.steps_ns;
  for (auto* parts : {&summary.modules, &summary.ops}) {
    for (Part& part : *parts) complete_part(part, stage_ns, by);
  }
  return {};
}

}  // namespace llmprof::analyze
