#include "analyze/diff/digest_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>

#include "analyze/questions.h"
#include "analyze/rows_of.h"

namespace llmprof::analyze {
namespace {

constexpr const char* kNoModule = "not matched to the model";

struct Key {
  std::string kind, stage, name;
  auto operator<=>(const Key&) const = default;
};

struct Sums {
  double ns = 0, estimated_ns = 0, calls = 0;  // over all steps
  std::map<std::string, KernelUse> kernels;    // by name
  double steady_ns = 0;                        // over the steps that are compared, measured
  std::map<std::size_t, double> batches;       // ns per step, by batch of these
};
using Parts = std::map<Key, Sums>;

// The module and those around it: layers.7.mlp, layers.7, layers.
void each_module(std::string path, const std::function<void(const std::string&)>& visit) {
  while (!path.empty()) {
    visit(path);
    const std::size_t dot = path.rfind('.');
    if (dot == std::string::npos) return;
    path.resize(dot);
  }
}

std::string shape_name(const RowView& row, std::string_view products) {
  const std::int64_t count = row.integer(products);
  return fmt::format("[{}, {}] x [{}, {}]{} {}", row.integer("m"), row.integer("k"), row.integer("k"), row.integer("n"),
                     count > 1 ? fmt::format(" x {}", count) : "", row.text("type"));
}

// What a row of a kernel counts for.
template <class Visit>
void each_part(const RowView& row, std::string_view products, const Visit& visit) {
  const std::string stage = row.text("stage"), op = row.text("op");
  each_module(row.text("module"), [&](const std::string& path) { visit(Key{"module", stage, path}); });
  visit(Key{"operator", stage, op.empty() ? kNoModule : op});
  if (!row.value("m").is_null()) visit(Key{"shape", stage, shape_name(row, products)});
}

Result<void> add_kernels(const trace::Run& run, Parts& parts) {
  LLMPROF_LET(const trace::ResultTable table, ask(run, "sql/diff_kernels"));
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const RowView row{table, i};
    each_part(row, "batch", [&](const Key& key) {
      Sums& part = parts[key];
      part.ns += row.real("time_ns");
      part.estimated_ns += row.real("estimated_ns");
      part.calls += row.real("executions");
      KernelUse& kernel = part.kernels[row.text("name")];
      kernel.name = row.text("name");
      kernel.executions += row.real("executions");
      kernel.ns += row.real("time_ns");
    });
  }
  return {};
}

Result<void> add_kernel_batches(const trace::Run& run, Parts& parts) {
  LLMPROF_LET(const trace::ResultTable table, ask(run, "sql/diff_part_batches"));
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const RowView row{table, i};
    const auto batch = static_cast<std::size_t>(row.integer("batch"));
    each_part(row, "products", [&](const Key& key) {
      parts[key].batches[batch] += row.real("time_ns") / row.real("steps");
      parts[key].steady_ns += row.real("time_ns");
    });
  }
  return {};
}

// Where the host computes, a part takes the time of its ranges: modules whole, operators without the modules inside.
Result<void> use_ranges(const trace::Run& run, const Summary& summary, Parts& parts) {
  for (auto& [key, part] : parts) {
    if (key.kind == "shape") continue;
    part.ns = part.steady_ns = 0;
    part.batches.clear();
  }
  for (const Part& module : summary.modules) {
    parts[{"module", module.stage, module.name}].ns += static_cast<double>(module.time_ns);
  }
  for (const Part& op : summary.ops) parts[{"operator", op.stage, op.name}].ns += static_cast<double>(op.self_ns);
  LLMPROF_LET(const trace::ResultTable table, ask(run, "sql/diff_range_batches"));
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const RowView row{table, i};
    const auto batch = static_cast<std::size_t>(row.integer("batch"));
    const double steps = row.real("steps");
    const auto add = [&](Sums& part, double ns) {
      part.batches[batch] += ns / steps;
      part.steady_ns += ns;
    };
    add(parts[{"module", row.text("stage"), row.text("module")}], row.real("total_ns"));
    add(parts[{"operator", row.text("stage"), row.text("op")}], row.real("self_ns"));
  }
  return {};
}

void set_work(const Summary& summary, double steps, PartDigest& part) {
  for (const Part& each : part.kind == "operator" ? summary.ops : summary.modules) {
    if (part.kind == "shape" || each.stage != part.stage || each.name != part.name) continue;
    if (each.efficiency.flops) part.flops = *each.efficiency.flops / steps;
    if (each.efficiency.bytes) part.bytes = *each.efficiency.bytes / steps;
  }
}

// How many steps of each stage are compared.
Result<std::map<std::string, std::int64_t>> steady_steps(const trace::Run& run) {
  LLMPROF_LET(const trace::ResultTable table,
              run.query("SELECT stage, count(*) FROM paced_step WHERE steady AND stage IS NOT NULL GROUP BY stage"));
  std::map<std::string, std::int64_t> steps;
  for (const auto& row : table.rows) steps[row[0].text] = row[1].as_int();
  return steps;
}

PartDigest finished(const Key& key, const Sums& sums, const Stage& stage, std::int64_t steady) {
  const auto steps = static_cast<double>(std::max<std::int64_t>(stage.steps, 1));
  PartDigest part{.kind = key.kind, .name = key.name, .stage = key.stage};
  const bool measured = sums.estimated_ns <= 0 && !sums.batches.empty();
  if (measured) {
    // A batch without the part took no time in it.
    std::vector<double> batches(static_cast<std::size_t>(std::min<std::int64_t>(steady, kMostBatches)));
    for (const auto& [batch, ns] : sums.batches) {
      if (batch >= 1 && batch <= batches.size()) batches[batch - 1] = ns;
    }
    part.ns = mean_of_batches(std::move(batches));
  }
  // Times of graphs that were not recorded node by node are known for all steps together only.
  part.ns.value = measured ? sums.steady_ns / static_cast<double>(std::max<std::int64_t>(steady, 1)) : sums.ns / steps;
  part.ns.samples = measured ? steady : 1;
  part.calls = sums.calls / steps;
  if (sums.ns > 0) part.estimated = sums.estimated_ns / sums.ns;
  for (const auto& [name, kernel] : sums.kernels) {
    part.kernels.push_back({name, kernel.executions / steps, kernel.ns / steps});
  }
  std::sort(part.kernels.begin(), part.kernels.end(),
            [](const KernelUse& a, const KernelUse& b) { return std::tie(b.ns, a.name) < std::tie(a.ns, b.name); });
  constexpr std::size_t kMostKernels = 40;
  if (part.kernels.size() > kMostKernels) part.kernels.resize(kMostKernels);
  return part;
}

}  // namespace

Result<std::vector<PartDigest>> part_digests(const trace::Run& run, const Summary& summary) {
  Parts parts;
  LLMPROF_TRY(add_kernels(run, parts));
  LLMPROF_TRY(add_kernel_batches(run, parts));
  if (!summary.on_gpu) LLMPROF_TRY(use_ranges(run, summary, parts));
  LLMPROF_LET(auto steady, steady_steps(run));
  std::vector<PartDigest> digests;
  for (const auto& [key, sums] : parts) {
    for (const Stage& stage : summary.stages) {
      if (stage.name != key.stage || sums.ns <= 0) continue;
      PartDigest part = finished(key, sums, stage, steady[stage.name]);
      set_work(summary, static_cast<double>(std::max<std::int64_t>(stage.steps, 1)), part);
      digests.push_back(std::move(part));
    }
  }
  std::sort(digests.begin(), digests.end(), [](const PartDigest& a, const PartDigest& b) {
    return std::tie(a.kind, b.ns.value, a.stage, a.name) < std::tie(b.kind, a.ns.value, b.stage, b.name);
  });
  return digests;
}

}  // namespace llmprof::analyze
