#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analyze/questions.h"
#include "analyze/rows_of.h"
#include "analyze/sections/sections.h"
#include "model/model.h"

namespace llmprof::analyze {

namespace {

using StageAndName = std::pair<std::string, std::string>;

// "a.b.c", "a.b", "a"
template <class Use>
void for_each_ancestor(std::string path, const Use& use) {
  while (true) {
    use(path);
    const std::size_t dot = path.rfind('.');
    if (dot == std::string::npos) return;
    path.resize(dot);
  }
}

struct ModuleCost {
  std::string stage, name;
  double flops = 0, bytes = 0;
  std::optional<double> compute_ns;
};

// What modules must cost; flops_shapes: of a module's own calls, and of those of the modules inside it.
Result<void> fill_costs(const trace::Run& run, std::vector<Part>& modules) {
  LLMPROF_LET(const std::vector<ModuleCost> products, ask_rows<ModuleCost>(run, "module_products"));
  LLMPROF_LET(const std::vector<ModuleCost> known, ask_rows<ModuleCost>(run, "module_costs"));
  std::map<StageAndName, double> flops;
  std::map<StageAndName, const ModuleCost*> costs;
  for (const ModuleCost& row : products)
    for_each_ancestor(row.name, [&](const std::string& path) { flops[{row.stage, path}] += row.flops; });
  for (const ModuleCost& row : known) costs[{row.stage, row.name}] = &row;
  for (Part& module : modules) {
    Efficiency& efficiency = module.efficiency;
    const StageAndName key{module.stage, module.name};
    if (const auto found = flops.find(key); found != flops.end()) efficiency.flops_shapes = found->second;
    if (const auto cost = costs.find(key); cost != costs.end()) {
      efficiency.flops = cost->second->flops;
      efficiency.bytes = cost->second->bytes;
      efficiency.compute_ns = cost->second->compute_ns;
    }
  }
  return {};
}

// An operator is the sum of its modules; its cost is known only if the cost of each of them is.
void add_module(const Part& module, bool first, Part& op) {
  op.name = module.op;
  op.stage = module.stage;
  op.calls += module.calls;
  op.total_ns += module.total_ns;
  op.self_ns += module.self_ns;
  op.kernel_ns += module.kernel_ns;
  op.estimated_ns += module.estimated_ns;
  op.time_ns += module.time_ns;
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
  add(op.efficiency.compute_ns, module.efficiency.compute_ns);
  if (module.efficiency.flops_shapes)
    op.efficiency.flops_shapes = op.efficiency.flops_shapes.value_or(0) + *module.efficiency.flops_shapes;
  op.source = module.source;
}

void complete_part(const Summary& summary, const Denominators& by, bool predicted, Part& part) {
  // Ranges of a prediction only say where its executions belong: there is no host.
  if (part.self_ns > 0 && part.source == "range" && !predicted) part.host_ns = part.self_ns;
  for (const Stage& stage : summary.stages) {
    const std::int64_t own_ns = summary.on_gpu ? part.kernel_ns : part.self_ns;
    const std::int64_t all_ns = summary.on_gpu ? stage.kernel_ns : stage.steps_ns;
    if (stage.name == part.stage && all_ns > 0) part.share = static_cast<double>(own_ns) / static_cast<double>(all_ns);
  }
  if (!part.efficiency.flops && by.cost_why.empty())
    part.efficiency.why = "not a part of the model analysis, or of unknown size";
  complete(part.efficiency, static_cast<double>(part.time_ns), for_stage(by, part.stage));
}

Result<void> fill_products(const trace::Run& run, Summary& summary) {
  struct Row {
    std::string stage, op;
    std::int64_t m = 0, n = 0, k = 0, batch = 1, calls = 0, time_ns = 0;
  };
  LLMPROF_LET(const std::vector<Row> rows, ask_rows<Row>(run, "operator_products"));
  std::map<StageAndName, std::vector<Product>> products;
  for (const Row& row : rows) {
    Product product{.m = row.m, .n = row.n, .k = row.k, .batch = row.batch, .calls = row.calls, .time_ns = row.time_ns};
    product.shape = fmt::format("[{0}, {1}] x [{1}, {2}]{3}", row.m, row.k, row.n,
                                row.batch > 1 ? fmt::format(" x{}", row.batch) : "");
    if (row.time_ns > 0) {
      const double flops = model::gemm_flops(row.m, row.n, row.k, row.batch);
      product.flops_per_s = flops * static_cast<double>(row.calls) / (static_cast<double>(row.time_ns) * 1e-9);
    }
    products[{row.stage, row.op}].push_back(product);
  }
  for (Part& op : summary.ops) {
    if (const auto found = products.find({op.stage, op.name}); found != products.end()) {
      op.products = std::move(found->second);
    }
  }
  return {};
}

}  // namespace

void set_times(std::vector<Part>& modules, bool on_gpu) {
  std::map<StageAndName, std::int64_t> kernel_ns;
  for (const Part& module : modules)
    for_each_ancestor(module.name, [&](const std::string& path) {
      kernel_ns[{module.stage, path}] += module.kernel_ns;
    });
  for (Part& module : modules) {
    const std::int64_t of_kernels = kernel_ns[{module.stage, module.name}];
    module.time_ns = on_gpu ? of_kernels : std::max(module.total_ns, of_kernels);
  }
}

Result<void> fill_parts(const trace::Run& run, const Denominators& by, Summary& summary) {
  LLMPROF_LET(summary.modules, ask_rows<Part>(run, "modules"));
  LLMPROF_TRY(fill_costs(run, summary.modules));
  set_times(summary.modules, summary.on_gpu);
  std::map<StageAndName, Part> ops;
  for (const Part& module : summary.modules) {
    const auto [op, fresh] = ops.try_emplace({module.stage, module.op});
    add_module(module, fresh, op->second);
  }
  for (auto& [name, op] : ops) summary.ops.push_back(std::move(op));
  const auto own_ns = [&](const Part& part) { return summary.on_gpu ? part.kernel_ns : part.self_ns; };
  for (auto* parts : {&summary.modules, &summary.ops}) {
    std::stable_sort(parts->begin(), parts->end(), [&](const Part& a, const Part& b) { return own_ns(a) > own_ns(b); });
    for (Part& part : *parts) complete_part(summary, by, run.info().source == "predict", part);
  }
  return fill_products(run, summary);
}

Result<void> fill_unmatched(const trace::Run& run, Summary& summary) {
  if (summary.modules.empty()) return {};
  LLMPROF_LET(const std::vector<Unmatched> rows, ask_rows<Unmatched>(run, "unmatched"));
  for (const Stage& stage : summary.stages) {
    const auto found = std::ranges::find(rows, stage.name, &Unmatched::stage);
    Unmatched rest = found == rows.end() ? Unmatched{.stage = stage.name} : *found;
    rest.time_ns = stage.steps_ns;
    for (const Part& module : summary.modules) {
      if (module.stage == stage.name) rest.time_ns -= module.self_ns;
    }
    rest.time_ns = std::max<std::int64_t>(rest.time_ns, 0);  // modules of several threads may overlap
    if (summary.on_gpu) rest.time_ns = rest.kernel_ns;
    const std::int64_t all_ns = summary.on_gpu ? stage.kernel_ns : stage.steps_ns;
    if (all_ns > 0) rest.share = static_cast<double>(rest.time_ns) / static_cast<double>(all_ns);
    summary.unmatched.push_back(std::move(rest));
  }
  return {};
}

}  // namespace llmprof::analyze
