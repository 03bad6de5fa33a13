#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "analyze/context.h"
#include "analyze/counters/readings.h"
#include "analyze/counters/stages.h"
#include "analyze/model/efficiency.h"
#include "analyze/model/kernel_roofline.h"
#include "analyze/questions.h"
#include "analyze/rows_of.h"
#include "analyze/sections/imported_summary.h"
#include "analyze/sections/sections.h"
#include "hw/counters/catalog.h"
#include "hw/roof.h"
#include "model/kernel_work.h"
#include "model/model.h"
#include "trace/run.h"

namespace llmprof::analyze {

// Kernels with hardware counters, all launches of one name together: what a report says of them.

Result<std::vector<CountedKernel>> counted_kernels(const trace::Run& run, const AnalysisContext& analysis);

namespace {

// In pieces: a trace may hold tens of millions of operators, but few names.
Result<void> fill_framework_ops(const trace::Run& run, Imported& imported) {
  OpNesting nesting;
  std::vector<std::string> names;
  LLMPROF_TRY(run.column_chunks(std::string(sql_of("framework_ops")), [&](const trace::ColumnChunk& chunk) {
    const auto& v = chunk.values;
    for (std::size_t i = 0; i < chunk.count; ++i) nesting.add({v[0][i], v[1][i], v[2][i], v[3][i], v[4][i], v[5][i]});
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

Result<void> fill_attentions(const trace::Run& run, const AnalysisContext& analysis, Imported& imported) {
  LLMPROF_LET(imported.attentions, ask_rows<AttentionShape>(run, "attention_shapes"));
  for (AttentionShape& shape : imported.attentions) {
    shape.label = label_of(shape), shape.shape = shape_of(shape);
    shape.flops = static_cast<double>(shape.calls) * attention_flops(shape);
    if (shape.time_ns > 0) {
      const auto ns = static_cast<double>(shape.time_ns);
      shape.flops_per_s = shape.flops / (ns * 1e-9);
      const PeakRate* peak = analysis.peak("flops", shape.type);
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

Result<void> fill_imported(const trace::Run& run, const AnalysisContext& analysis, Imported& imported) {
  LLMPROF_LET(imported.sources, ask_rows<SourceFile>(run, "sources"));
  LLMPROF_LET(imported.merged, ask_rows<MergedFile>(run, "merged"));
  LLMPROF_TRY(fill_framework_ops(run, imported));
  LLMPROF_TRY(fill_attentions(run, analysis, imported));
  LLMPROF_LET(imported.counted, counted_kernels(run, analysis));
  LLMPROF_LET(imported.totals, ask_rows<Total>(run, "totals"));
  LLMPROF_LET(imported.reported, ask_rows<ReportedFigure>(run, "reported"));
  return {};
}

namespace {

constexpr std::string_view kL2Hit = "lts__t_sectors_lookup_hit.sum", kL2Miss = "lts__t_sectors_lookup_miss.sum";
constexpr std::string_view kStall = "smsp__average_warps_issue_stalled_";
constexpr std::string_view kStallEnd = "_per_issue_active.ratio";

constexpr std::string_view kStallCounter = "stall_", kStallCounterEnd = "_pct";

bool is_stall(std::string_view counter) {
  return counter.starts_with(kStallCounter) && counter.ends_with(kStallCounterEnd);
}

// What the catalogue makes of a kernel's metrics here.
bool is_wanted(std::string_view counter) {
  static constexpr std::array<std::string_view, 13> kWanted = {"achieved_occupancy_pct",
                                                               "l2_hit_pct",
                                                               "tensor_active_pct",
                                                               "l2_bytes",
                                                               "l1_bytes",
                                                               "tma_read_bytes",
                                                               "sectors_per_load",
                                                               "sectors_per_store",
                                                               "bytes_per_load_sector",
                                                               "shared_active_pct",
                                                               "bank_conflict_pct",
                                                               "local_bytes",
                                                               "local_pct"};
  return is_stall(counter) || std::ranges::find(kWanted, counter) != kWanted.end();
}

std::string counters_sql() {
  std::vector<std::string> patterns = roofline_metrics();
  for (const hw::counters::Counter& counter : hw::counters::catalog()) {
    if (!is_wanted(counter.name)) continue;
    for (const auto& formula : counter.formulas)
      patterns.insert(patterns.end(), formula.metrics.begin(), formula.metrics.end());
  }
  patterns.emplace_back(kL2Hit), patterns.emplace_back(kL2Miss);
  patterns.push_back(fmt::format("{}%{}", kStall, kStallEnd));
  std::string wanted;
  for (const std::string& pattern : patterns)
    wanted += fmt::format("{}c.metric LIKE '{}'", wanted.empty() ? "" : " OR ", pattern);
  return fmt::format(
      "SELECT k.id, k.name, coalesce(k.time_ns, 0), k.device_id, c.metric, CAST(c.value AS DOUBLE) FROM counter AS c "
      "JOIN counted_kernel AS k ON k.id = c.scope_id WHERE c.scope = 'kernel' AND ({}) ORDER BY k.id",
      wanted);
}

// A mean over launches, weighted by their time; only of launches that say it.
struct Mean {
  double sum = 0, weight = 0;
  void add(const std::optional<double>& value, double by) {
    if (value) sum += *value * by, weight += by;
  }
  std::optional<double> value() const { return weight > 0 ? std::optional(sum / weight) : std::nullopt; }
};

struct Sum {  // unknown as soon as one launch does not say it
  double total = 0;
  bool known = true;
  void add(const std::optional<double>& value) { known = known && value, total += value.value_or(0); }
  std::optional<double> value() const { return known ? std::optional(total) : std::nullopt; }
};

struct Group {
  std::int64_t launches = 0, time_ns = 0;
  bool timed = true;  // every launch
  Sum flops, tensor_flops, dram_bytes, l2_bytes, l1_bytes, local_bytes;
  Mean occupancy, l2_hits, tensor_busy, roof;
  Mean sectors_per_load, sectors_per_store, bytes_per_load_sector, shared_busy, bank_conflicts, local_share;
  std::map<std::string, Mean> stalls, resident_stalls;
  std::map<std::string, double> bounds, types;  // time of launches that are bound so
};

class Groups {
 public:
  explicit Groups(const AnalysisContext& analysis) : basis_(analysis) {}

  void next(std::int64_t id, const std::string& name, double time_ns, std::int64_t device) {
    if (id == id_) return;
    finish();
    id_ = id, name_ = name, device_ = device;
    counters_ = {time_ns, {}};
  }
  void counter(const std::string& metric, double value) { counters_.values.emplace(metric, value); }

  void finish() {
    if (id_ == 0) return;
    const KernelRoofline point = kernel_roofline(counters_, peaks_of(device_));
    Group& group = groups_[name_];
    const double by = std::max(counters_.time_ns, 1.0);
    ++group.launches;
    group.time_ns += static_cast<std::int64_t>(counters_.time_ns);
    group.timed = group.timed && counters_.time_ns > 0;
    group.flops.add(point.flops);
    group.tensor_flops.add(point.tensor_flops);
    group.dram_bytes.add(point.dram_bytes);
    group.l2_bytes.add(counters::value_of("l2_bytes", counters_.values));
    group.l1_bytes.add(counters::l1_bytes(counters_.values));
    group.occupancy.add(fraction("achieved_occupancy_pct"), by);
    group.l2_hits.add(l2_hits(), by);
    group.tensor_busy.add(fraction("tensor_active_pct"), by);
    group.roof.add(point.share_of_roof, by);
    add_access(group, by);
    if (!point.bound.empty()) group.bounds[point.bound] += by;
    if (!point.type.empty()) group.types[point.type] += by;
    add_stalls(group, by);
    id_ = 0;
  }

  std::vector<CountedKernel> kernels() const {
    std::vector<CountedKernel> all;
    for (const auto& [name, group] : groups_) all.push_back(kernel(name, group));
    std::ranges::stable_sort(all, std::greater{}, &CountedKernel::time_ns);
    return all;
  }

 private:
  std::optional<double> fraction(std::string_view counter) const {
    const std::optional<double> percent = counters::value_of(counter, counters_.values);
    return percent ? std::optional(*percent / 100) : std::nullopt;
  }
  std::optional<double> l2_hits() const {
    if (const std::optional<double> rate = fraction("l2_hit_pct")) return rate;
    const auto hit = counters_.values.find(kL2Hit), miss = counters_.values.find(kL2Miss);
    if (hit == counters_.values.end() || miss == counters_.values.end()) return std::nullopt;
    const double all = hit->second + miss->second;
    return all > 0 ? std::optional(hit->second / all) : std::nullopt;
  }

  void add_access(Group& group, double by) const {
    group.sectors_per_load.add(counters::value_of("sectors_per_load", counters_.values), by);
    group.sectors_per_store.add(counters::value_of("sectors_per_store", counters_.values), by);
    // Instrumented code counts these bytes, and CUPTI gives 0 where it did not run: no load needs no byte.
    const auto needed = counters::value_of("bytes_per_load_sector", counters_.values);
    group.bytes_per_load_sector.add(needed && *needed > 0 ? needed : std::nullopt, by);
    group.shared_busy.add(fraction("shared_active_pct"), by);
    group.bank_conflicts.add(fraction("bank_conflict_pct"), by);
    group.local_bytes.add(counters::value_of("local_bytes", counters_.values));
    group.local_share.add(fraction("local_pct"), by);
  }

  // Nsight Compute says warps per issue; what we read ourselves are shares of the resident warps.
  void add_stalls(Group& group, double by) const {
    for (auto at = counters_.values.lower_bound(kStall); at != counters_.values.end() && at->first.starts_with(kStall);
         ++at) {
      const std::string reason = at->first.substr(kStall.size(), at->first.size() - kStall.size() - kStallEnd.size());
      group.stalls[reason].add(at->second, by);
    }
    if (!group.stalls.empty()) return;
    for (const hw::counters::Counter& counter : hw::counters::catalog()) {
      if (!is_stall(counter.name)) continue;
      const std::size_t length = counter.name.size() - kStallCounter.size() - kStallCounterEnd.size();
      if (const auto share = fraction(counter.name))
        group.resident_stalls[counter.name.substr(kStallCounter.size(), length)].add(share, by);
    }
  }

  const std::vector<hw::Peak>& peaks_of(std::int64_t device) {
    const auto [found, fresh] = peaks_.try_emplace(device);
    if (fresh) found->second = counters::peaks_of(basis_, device);
    return found->second;
  }

  static std::string most(const std::map<std::string, double>& times) {
    const auto longest = std::ranges::max_element(times, {}, [](const auto& entry) { return entry.second; });
    return longest == times.end() ? "" : longest->first;
  }

  static CountedKernel kernel(const std::string& name, const Group& group) {
    CountedKernel kernel{.name = name, .launches = group.launches, .time_ns = group.timed ? group.time_ns : 0};
    kernel.flops = group.flops.value(), kernel.tensor_flops = group.tensor_flops.value();
    kernel.dram_bytes = group.dram_bytes.value();
    kernel.l2_bytes = group.l2_bytes.value(), kernel.l1_bytes = group.l1_bytes.value();
    const double seconds = static_cast<double>(kernel.time_ns) * 1e-9;
    if (kernel.flops && seconds > 0) kernel.flops_per_s = *kernel.flops / seconds;
    if (kernel.dram_bytes && seconds > 0) kernel.bytes_per_s = *kernel.dram_bytes / seconds;
    if (kernel.flops && kernel.dram_bytes.value_or(0) > 0) kernel.intensity = *kernel.flops / *kernel.dram_bytes;
    kernel.occupancy = group.occupancy.value(), kernel.l2_hits = group.l2_hits.value();
    kernel.tensor_busy = group.tensor_busy.value(), kernel.of_roof = group.roof.value();
    kernel.sectors_per_load = group.sectors_per_load.value(),
    kernel.sectors_per_store = group.sectors_per_store.value();
    kernel.bytes_per_load_sector = group.bytes_per_load_sector.value();
    kernel.shared_busy = group.shared_busy.value(), kernel.bank_conflicts = group.bank_conflicts.value();
    kernel.local_bytes = group.local_bytes.value(), kernel.local_share = group.local_share.value();
    kernel.bound = most(group.bounds), kernel.type = most(group.types);
    kernel.stalls_of_resident = group.stalls.empty();
    const auto& stalls = kernel.stalls_of_resident ? group.resident_stalls : group.stalls;
    for (const auto& [reason, warps] : stalls) kernel.stalls.push_back({reason, warps.value().value_or(0)});
    std::ranges::stable_sort(kernel.stalls, std::greater{}, &CountedKernel::Stall::warps);
    return kernel;
  }

  const AnalysisContext& basis_;
  std::int64_t id_ = 0, device_ = 0;
  std::string name_;
  KernelCounters counters_;
  std::map<std::string, Group> groups_;
  std::map<std::int64_t, std::vector<hw::Peak>> peaks_;
};

}  // namespace

Result<std::vector<CountedKernel>> counted_kernels(const trace::Run& run, const AnalysisContext& analysis) {
  if (!counters::has_rows(run, "counter")) return std::vector<CountedKernel>();
  Groups groups(analysis);
  LLMPROF_TRY(run.column_chunks(counters_sql(), [&](const trace::ColumnChunk& chunk) {
    const auto& v = chunk.values;
    for (std::size_t i = 0; i < chunk.count; ++i) {
      groups.next(v[0][i], chunk.names[static_cast<std::size_t>(v[1][i])], static_cast<double>(v[2][i]), v[3][i]);
      groups.counter(chunk.names[static_cast<std::size_t>(v[4][i])], chunk.reals[5][i]);
    }
    return true;
  }));
  groups.finish();
  return groups.kernels();
}

}  // namespace llmprof::analyze
