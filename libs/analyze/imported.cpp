#include "analyze/imported.h"

#include <fmt/format.h>

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
  const auto share = [](std::int64_t part, std::int64_t all) {
    return all > 0 ? std::optional(static_cast<double>(part) / static_cast<double>(all)) : std::nullopt;
  };
  for (FrameworkOp& op : imported.framework_ops) {
    op.self_host_share = share(op.self_host_ns, imported.framework_host_ns);
    if (op.self_device_ns > 0) op.self_device_share = share(op.self_device_ns, imported.framework_device_ns);
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

// "aten::_scaled_dot_product" without the framework's own marks.
std::string label_of(const AttentionShape& shape) {
  std::string_view name = shape.function;
  if (name.starts_with("aten::")) name.remove_prefix(name.starts_with("aten::_") ? 7 : 6);
  return fmt::format("{}{}", name, !shape.causal ? "" : *shape.causal ? ", causal" : ", every pair");
}

std::string shape_of(const AttentionShape& shape) {
  const auto both = [](std::int64_t a, std::int64_t b, std::string_view between) {
    return a == b ? fmt::format("{}", a) : fmt::format("{}{}{}", a, between, b);
  };
  return fmt::format("{} x {} x {}", shape.batch, both(shape.heads, shape.kv_heads, "/"),
                     both(shape.head_size, shape.value_size, ", "));
}

Result<void> fill_attentions(const trace::Run& run, const Basis& basis, Imported& imported) {
  LLMPROF_LET(imported.attentions, ask_rows<AttentionShape>(run, "sql/attention_shapes"));
  for (AttentionShape& shape : imported.attentions) {
    shape.label = label_of(shape), shape.shape = shape_of(shape);
    shape.flops = static_cast<double>(shape.calls) * attention_flops(shape);
    if (shape.time_ns > 0) {
      const auto ns = static_cast<double>(shape.time_ns);
      shape.flops_per_s = shape.flops / (ns * 1e-9);
      const PeakRate* peak = basis.peak("flops", shape.type);
      if (peak != nullptr) shape.of_peak = hw::efficiency(shape.flops, ns, peak->value);
    }
    if (!shape.of_peak) shape.why = "no time, or no peak FLOP/s is known for this device and type";
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
  LLMPROF_LET(imported.sources, ask_rows<SourceFile>(run, "sql/sources"));
  LLMPROF_TRY(fill_framework_ops(run, imported));
  LLMPROF_TRY(fill_attentions(run, basis, imported));
  LLMPROF_LET(imported.counted, counted_kernels(run, basis));
  LLMPROF_LET(imported.totals, ask_rows<Total>(run, "sql/totals"));
  return {};
}

}  // namespace llmprof::analyze
