#include "analyze/imported.h"

#include <algorithm>

#include "analyze/counted_kernels.h"
#include "analyze/questions.h"
#include "analyze/rows_of.h"
#include "analyze/shapes.h"
#include "hw/roof.h"
#include "model/kernel_work.h"
#include "model/model.h"

namespace llmprof::analyze {
namespace {

Result<void> fill_sources(const trace::Run& run, Imported& imported) {
  LLMPROF_LET(const trace::ResultTable table, ask(run, "sql/sources"));
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const RowView row{table, i};
    imported.sources.push_back(
        {row.text("file"), row.text("format"), row.text("tool"), row.text("clock"), row.integer("bytes")});
  }
  return {};
}

// In pieces: a trace may hold tens of millions of operators, but few names.
Result<void> fill_framework_ops(const trace::Run& run, Imported& imported) {
  OpNesting nesting;
  std::vector<std::string> names;
  LLMPROF_TRY(
      run.column_chunks(std::string(find_question("sql/framework_ops")->sql), [&](const trace::ColumnChunk& chunk) {
        const auto& v = chunk.values;
        for (std::size_t i = 0; i < chunk.count; ++i)
          nesting.add({v[0][i], v[1][i], v[2][i], v[3][i], v[4][i], v[5][i]});
        names = chunk.names;
        return true;
      }));
  nesting.finish();
  for (std::size_t code = 0; code < nesting.by_name().size(); ++code) {
    const OpNesting::Sums& sums = nesting.by_name()[code];
    if (sums.calls == 0) continue;
    imported.framework_ops.push_back(
        {names[code], sums.calls, sums.host_ns, sums.self_host_ns, sums.device_ns, sums.self_device_ns, sums.launches});
    imported.framework_host_ns += sums.self_host_ns;
    imported.framework_device_ns += sums.self_device_ns;
  }
  std::ranges::sort(imported.framework_ops, [](const FrameworkOp& a, const FrameworkOp& b) {
    if (a.self_device_ns != b.self_device_ns) return a.self_device_ns > b.self_device_ns;
    return a.self_host_ns != b.self_host_ns ? a.self_host_ns > b.self_host_ns : a.name < b.name;
  });
  return {};
}

// By the formulas of libs/model, where attention is causal: new tokens at the end of their context. An operator that
// says it is not causal computes every pair.
double attention_flops(const AttentionShape& shape) {
  const auto queries = static_cast<double>(shape.queries), keys = static_cast<double>(shape.keys);
  const auto sequences = static_cast<double>(shape.batch);
  if (shape.causal.value_or(true) && shape.keys >= shape.queries) {
    model::Attention attention;
    attention.heads = shape.heads, attention.kv_heads = shape.kv_heads;
    attention.qk_dim = shape.head_size, attention.v_dim = shape.value_size;
    return model::attention_work(attention, sequences, queries, keys, 0).flops;
  }
  return 2 * sequences * static_cast<double>(shape.heads * (shape.head_size + shape.value_size)) * queries * keys;
}

Result<void> fill_attentions(const trace::Run& run, const Basis& basis, Imported& imported) {
  LLMPROF_LET(const trace::ResultTable table, ask(run, "sql/attention_shapes"));
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const RowView row{table, i};
    AttentionShape shape{.stage = row.text("stage"),
                         .function = row.text("function"),
                         .type = row.text("type"),
                         .batch = row.integer("batch"),
                         .heads = row.integer("heads"),
                         .kv_heads = row.integer("kv_heads"),
                         .queries = row.integer("queries"),
                         .keys = row.integer("keys"),
                         .head_size = row.integer("head_size"),
                         .value_size = row.integer("value_size"),
                         .calls = row.integer("calls"),
                         .time_ns = row.integer("time_ns")};
    if (!row.value("causal").is_null()) shape.causal = row.integer("causal") != 0;
    shape.flops = static_cast<double>(shape.calls) * attention_flops(shape);
    if (shape.time_ns > 0) {
      const auto ns = static_cast<double>(shape.time_ns);
      shape.flops_per_s = shape.flops / (ns * 1e-9);
      const PeakRate* peak = basis.peak("flops", shape.type);
      if (peak != nullptr) shape.of_peak = hw::efficiency(shape.flops, ns, peak->value);
    }
    imported.attentions.push_back(std::move(shape));
  }
  return {};
}

Result<void> fill_totals(const trace::Run& run, Imported& imported) {
  LLMPROF_LET(const trace::ResultTable table, ask(run, "sql/totals"));
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const RowView row{table, i};
    imported.totals.push_back({row.text("kind"), row.text("name"), row.text("shapes"), row.maybe_integer("calls"),
                               row.maybe_real("self_cpu_ns"), row.maybe_real("cpu_ns"),
                               row.maybe_real("self_device_ns"), row.maybe_real("device_ns"),
                               row.maybe_real("cpu_bytes"), row.maybe_real("device_bytes"), row.maybe_real("flops"),
                               row.maybe_real("moved_bytes")});
  }
  return {};
}

}  // namespace

void OpNesting::close() {
  const Open& last = open_.back();
  const std::int64_t host_ns = last.row.end_ns - last.row.begin_ns,
                     device_ns = last.row.device_ns + last.child_device_ns;
  const auto code = static_cast<std::size_t>(std::max<std::int64_t>(last.row.name, 0));
  if (sums_.size() <= code) sums_.resize(code + 1);
  Sums& sums = sums_[code];
  ++sums.calls;
  sums.host_ns += host_ns;
  sums.self_host_ns += std::max<std::int64_t>(host_ns - last.child_host_ns, 0);
  sums.device_ns += device_ns;
  sums.self_device_ns += last.row.device_ns;
  sums.launches += last.row.launches;
  if (open_.size() > 1) {
    open_[open_.size() - 2].child_host_ns += host_ns;
    open_[open_.size() - 2].child_device_ns += device_ns;
  }
  open_.pop_back();
}

void OpNesting::add(const Row& row) {
  // What ends before this one ends is not around it.
  while (!open_.empty() && (open_.back().row.thread_id != row.thread_id || open_.back().row.end_ns <= row.begin_ns ||
                            open_.back().row.end_ns < row.end_ns)) {
    close();
  }
  open_.push_back({row});
}

void OpNesting::finish() {
  while (!open_.empty()) close();
}

Result<void> fill_imported(const trace::Run& run, const Basis& basis, Imported& imported) {
  LLMPROF_TRY(fill_sources(run, imported));
  LLMPROF_TRY(fill_framework_ops(run, imported));
  LLMPROF_TRY(fill_attentions(run, basis, imported));
  LLMPROF_LET(imported.counted, counted_kernels(run, basis));
  return fill_totals(run, imported);
}

}  // namespace llmprof::analyze
