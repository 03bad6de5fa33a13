#include "analyze/passes/attribute.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "analyze/passes/classify.h"

namespace llmprof::analyze {

StepWindows::StepWindows(const std::vector<Step>& steps, Of of) {
  for (std::size_t i = 0; i < steps.size(); ++i) {  // sorted by begin
    Series& series = series_[of == Of::kThread ? steps[i].thread_id : steps[i].process_id];
    const std::int64_t latest = series.latest_end_ns.empty() ? steps[i].end_ns : series.latest_end_ns.back();
    series.begin_ns.push_back(steps[i].begin_ns);
    series.end_ns.push_back(steps[i].end_ns);
    series.latest_end_ns.push_back(std::max(latest, steps[i].end_ns));
    series.step.push_back(static_cast<std::int32_t>(i));
    if (steps[i].declared()) threads_[steps[i].thread_id] = true;
  }
}

std::int32_t StepWindows::containing(std::int64_t id, std::int64_t at_ns) const {
  const auto found = series_.find(id);
  if (found == series_.end()) return kNone;
  const Series& series = found->second;
  auto place = std::upper_bound(series.begin_ns.begin(), series.begin_ns.end(), at_ns) - series.begin_ns.begin();
  while (place-- > 0 && series.latest_end_ns[place] > at_ns) {
    if (series.end_ns[place] > at_ns) return series.step[place];
  }
  return kNone;
}

Attribution::Attribution(const Ranges& ranges, const Classified& classified, const GemmOfKernel& gemms,
                         const ShapeMatches& matches, const ProcessOfThread& process_of_thread, trace::Strings& strings)
    : range_kernel_ns(ranges.size()),
      step_kernels(classified.steps.size()),
      step_kernel_ns(classified.steps.size()),
      ranges_(ranges),
      classified_(classified),
      gemms_(gemms),
      matches_(matches),
      process_of_thread_(process_of_thread),
      timelines_(ranges),
      windows_(classified.steps),
      operators_(strings),
      declared_(strings.intern("declared")),
      inferred_(strings.intern("inferred")),
      by_range_(strings.intern("range")),
      by_shape_(strings.intern("shape")),
      by_position_(strings.intern("position")) {
  for (const Step& step : classified.steps) {
    const std::string_view stage = strings.text(step.stage);
    matched_.push_back(stage == "prefill" || stage == "decode" || stage == "mixed" || stage == "verify");
  }
  for (const std::int32_t step : matches.step) {
    if (step != kNone) matched_[step] = true;
  }
}

Attribution::Where Attribution::locate(std::int64_t thread_id, std::int64_t at_ns) {
  Where where{.range = timelines_.innermost(thread_id, at_ns)};
  if (where.range != kNone) where.step = classified_.places[where.range].step;
  if (where.step != kNone || windows_.declares_steps(thread_id)) return where;
  const auto process = process_of_thread_.find(thread_id);
  if (process != process_of_thread_.end()) where.step = windows_.containing(process->second, at_ns);
  where.inferred = where.step != kNone;
  return where;
}

Attribution::Gemm Attribution::gemm_of(const Kernels& kernels, std::size_t i) {
  const std::size_t place =
      find_last_at_most(gemms_.kernel_id.data(), gemms_.kernel_id.size(), kernels.id[i], gemm_cursor_);
  if (place != kNotFound && gemms_.kernel_id[place] == kernels.id[i]) return {gemms_.gemm_id[place], true};
  return {kernels.gemm(i), false};
}

std::size_t Attribution::match_of(std::int64_t gemm_id) {
  if (matches_.gemm_id.empty() || gemm_id == kNull) return kNotFound;
  const std::size_t place = find_last_at_most(matches_.gemm_id.data(), matches_.gemm_id.size(), gemm_id, match_cursor_);
  return place != kNotFound && matches_.gemm_id[place] == gemm_id ? place : kNotFound;
}

// A range that names a module knows better, unless it does so in words of its own; a step that a range declares does,
// too.
void Attribution::use_match(std::int64_t gemm_id, const Where& where, trace::AttributionRow& row) {
  const std::size_t match = match_of(gemm_id);
  if (match == kNotFound || matches_.module[match].id == 0) return;
  const bool own_name = where.range != kNone && classified_.places[where.range].own_name;
  if (row.module.id != 0 && !own_name) return;
  row.module = matches_.module[match];
  row.op = operators_.of(row.module);
  row.module_source = by_shape_;
  row.source = inferred_;
  const double found = matches_.confidence[match];
  row.confidence = where.step != kNone && !where.inferred ? std::min(row.confidence, found) : found;
}

// What the launch says about modules holds where the node says nothing.
void Attribution::use_node(const trace::NodePlaceRow& node, trace::AttributionRow& row) {
  if (node.range_id) row.range_id = node.range_id;
  row.gemm_id = node.gemm_id;
  row.gemm_call = node.gemm_call;
  if (node.module.id == 0) return;
  row.module = node.module;
  row.op = node.op;
  row.module_source = node.module_source;
  row.confidence = std::min(row.confidence, node.confidence);
  if (node.module_source != by_range_) row.source = inferred_;
}

template <class Row>
void Attribution::use_place(const Positions::Place& place, Row& row) {
  if (place.module.id == 0 || row.module.id != 0) return;
  row.module = place.module;
  row.op = operators_.of(place.module);
  row.module_source = by_position_;
  row.confidence = std::min<double>(row.confidence, place.confidence);
}

// A kernel in no step, or in one whose products were not looked at, belongs to no pass, wherever it was launched.
void Attribution::use_positions(const Kernels& kernels, std::vector<trace::AttributionRow>& rows, std::size_t first) {
  if (matches_.launched.empty() || kernels.name.empty()) return;
  std::vector<KernelClass> classes;
  for (const std::string& text : kernels.texts) classes.push_back(class_of_kernel(text));
  std::vector<Positions::Kernel> asked;
  std::vector<std::size_t> row_of;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const trace::AttributionRow& row = rows[first + i];
    const bool core = matches_.launched.is_core(row.module);
    if (!row.step_id || !matched_[*row.step_id - 1]) continue;
    if (kernels.node(i) != kNull || kernels.launch_begin_ns[i] == kNull) continue;
    if (row.module.id != 0 && !core) continue;
    asked.push_back({kernels.thread_id[i], kernels.launch_begin_ns[i], classes[kernels.name[i]], core});
    row_of.push_back(first + i);
  }
  const std::vector<Positions::Place> places = matches_.launched.place(asked);
  for (std::size_t i = 0; i < places.size(); ++i) {
    trace::AttributionRow& row = rows[row_of[i]];
    if (places[i].module.id != 0 && row.module.id == 0) row.source = inferred_;
    use_place(places[i], row);
  }
}

void Attribution::use_positions(const GraphNodes& nodes, std::vector<trace::NodePlaceRow>& rows) {
  if (matches_.captured.empty() || nodes.is.empty()) return;
  std::vector<Positions::Kernel> asked;
  std::vector<std::size_t> row_of;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const bool core = matches_.captured.is_core(rows[i].module);
    if (nodes.captured_ns[i] == kNull || (rows[i].module.id != 0 && !core)) continue;
    asked.push_back({nodes.graph[i], nodes.captured_ns[i], nodes.is[i], core});
    row_of.push_back(i);
  }
  const std::vector<Positions::Place> places = matches_.captured.place(asked);
  for (std::size_t i = 0; i < places.size(); ++i) use_place(places[i], rows[row_of[i]]);
}

void Attribution::describe_module(const Where& where, trace::Name& module, trace::Name& op) {
  if (where.range == kNone) return;
  module = classified_.places[where.range].module;
  op = operators_.of(module);
}

template <class Row>
void Attribution::describe(const Where& where, Row& row) {
  row.confidence = 0;
  if (where.range != kNone) {
    row.range_id = ranges_.id[where.range];
    row.stage = classified_.places[where.range].stage;
  }
  if (where.step != kNone) {
    const Step& step = classified_.steps[where.step];
    row.step_id = where.step + 1;
    row.stage = step.stage;
    const bool declared = step.declared() && !where.inferred;
    row.source = declared ? declared_ : inferred_;
    row.confidence =
        step.declared() && where.inferred ? std::min(kInferredConfidence, step.confidence) : step.confidence;
  } else if (row.stage.id != 0) {  // in a stage, between its steps
    row.source = declared_;
    row.confidence = kPatternConfidence;
  }
}

trace::SamplePlaceRow Attribution::place(std::int64_t thread_id, std::int64_t at_ns) {
  trace::SamplePlaceRow row;
  const Where where = locate(thread_id, at_ns);
  describe(where, row);
  describe_module(where, row.module, row.op);
  return row;
}

// Ranges that name a stage or step at capture say nothing about the launches that replay the node.
std::vector<trace::NodePlaceRow> Attribution::place_nodes(const GraphNodes& nodes) {
  std::vector<trace::NodePlaceRow> rows;
  std::map<std::pair<std::int64_t, std::int64_t>, bool> called;  // graph, BLAS call
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    trace::NodePlaceRow row{.graph_node_id = nodes.id[i]};
    if (nodes.captured_ns[i] != kNull && nodes.thread_id[i] != kNull) {
      const Where where{.range = timelines_.innermost(nodes.thread_id[i], nodes.captured_ns[i])};
      if (where.range != kNone) row.range_id = ranges_.id[where.range];
      describe_module(where, row.module, row.op);
    }
    if (row.module.id != 0) row.module_source = by_range_;
    if (nodes.gemm_id[i] != kNull) {
      row.gemm_id = nodes.gemm_id[i];
      // A call may begin with a memset; its first kernel stands for it.
      const bool kernel = nodes.kind[i] == NodeKind::kKernel;
      row.gemm_call = kernel && called.try_emplace({nodes.graph[i], nodes.gemm_id[i]}, true).second;
    }
    const std::size_t match = row.module.id == 0 ? match_of(nodes.gemm_id[i]) : kNotFound;
    if (match != kNotFound && matches_.module[match].id != 0) {
      row.module = matches_.module[match];
      row.op = operators_.of(row.module);
      row.module_source = by_shape_;
      row.confidence = matches_.confidence[match];
    }
    rows.push_back(row);
  }
  use_positions(nodes, rows);
  for (const trace::NodePlaceRow& row : rows) nodes_[row.graph_node_id] = row;
  return rows;
}

Attribution::Where Attribution::locate_kernel(const Kernels& kernels, std::size_t i, const Gemm& gemm) {
  const std::int64_t launched = kernels.launch_begin_ns[i] != kNull ? kernels.launch_begin_ns[i] : kernels.begin_ns[i];
  Where where = locate(kernels.thread_id[i], launched);
  const std::size_t match = match_of(gemm.id);
  if (match != kNotFound && matches_.step[match] != kNone) where.step = matches_.step[match];
  return where;
}

std::int32_t Attribution::step_of(const Kernels& kernels, std::size_t i) {
  const Gemm gemm = asks_calls() && kernels.node(i) == kNull ? gemm_of(kernels, i) : Gemm{};
  return locate_kernel(kernels, i, gemm).step;
}

void Attribution::count(const Where& where, std::int64_t kernels, std::int64_t kernel_ns) {
  if (where.range != kNone) range_kernel_ns[where.range] += kernel_ns;
  if (where.step == kNone) return;
  step_kernels[where.step] += kernels;
  step_kernel_ns[where.step] += kernel_ns;
}

void Attribution::attribute(const Kernels& kernels, std::vector<trace::AttributionRow>& rows) {
  const std::size_t first = rows.size();
  rows.reserve(first + kernels.size());
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const bool in_graph = kernels.node(i) != kNull;
    const Gemm gemm = in_graph ? Gemm{} : gemm_of(kernels, i);
    const Where where = locate_kernel(kernels, i, gemm);
    trace::AttributionRow row{.kernel_id = kernels.id[i]};
    describe(where, row);
    describe_module(where, row.module, row.op);
    if (row.module.id != 0) row.module_source = by_range_;
    if (gemm.id != kNull) {
      row.gemm_id = gemm.id;
      row.gemm_call = gemm.call;
      use_match(gemm.id, where, row);
    }
    if (in_graph) {
      if (const auto node = nodes_.find(kernels.node(i)); node != nodes_.end()) use_node(node->second, row);
    }
    count(where, 1, kernels.end_ns[i] - kernels.begin_ns[i]);
    rows.push_back(row);
  }
  use_positions(kernels, rows, first);
}

void Attribution::place_launches(const GraphLaunches& launches, const SharesOfGraphs& shares,
                                 std::vector<trace::LaunchPlaceRow>& rows) {
  for (std::size_t i = 0; i < launches.size(); ++i) {
    const std::int64_t launched =
        launches.launch_begin_ns[i] != kNull ? launches.launch_begin_ns[i] : launches.begin_ns[i];
    const Where where = locate(launches.thread_id[i], launched);
    trace::LaunchPlaceRow row{.graph_launch_id = launches.id[i]};
    describe(where, row);
    rows.push_back(row);
    if (launches.nodes_recorded[i] > 0) continue;  // its kernels were counted themselves
    const double duration_ns = launches.end_ns[i] - launches.begin_ns[i];
    const auto graph = shares.find(launches.graph[i]);
    const bool known = graph != shares.end();
    count(where, known ? graph->second.kernels : 0,
          std::llround(known ? duration_ns * graph->second.kernel_time : duration_ns));
  }
}

namespace {

struct Outermost {  // modules of one thread that lie in no other, by begin
  std::vector<std::int64_t> begin_ns;
  std::vector<std::size_t> rank;  // by the first time that its name was seen: the order of a pass
};

class Thread {
 public:
  Thread(const Ranges& ranges, Classified& classified, std::size_t begin, std::size_t end)
      : ranges_(ranges), classified_(classified), begin_(begin), end_(end) {
    for (std::size_t i = 0; i < classified.steps.size(); ++i) {
      if (classified.steps[i].thread_id == ranges.thread_id[begin] && !classified.steps[i].declared())
        steps_.push_back(static_cast<std::int32_t>(i));
    }
  }

  void adopt() {
    if (steps_.empty()) return;
    find_outermost();
    for (std::size_t i = 0; i < steps_.size(); ++i) begin_with_first_module(i);
    for (std::size_t i = begin_; i < end_; ++i) take_in(i);
  }

 private:
  Step& step(std::size_t i) { return classified_.steps[steps_[i]]; }

  void find_outermost() {
    std::map<std::uint32_t, std::size_t> ranks;
    for (std::size_t i = begin_; i < end_; ++i) {
      const RangePlace& place = classified_.places[i];
      if (place.kind != RangeKind::kModule) continue;
      if (place.parent != kNone && classified_.places[place.parent].module.id != 0) continue;
      outermost_.begin_ns.push_back(ranges_.begin_ns[i]);
      outermost_.rank.push_back(ranks.try_emplace(place.module.id, ranks.size()).first->second);
    }
  }

  // From the module that holds the first product back to those before it, as long as they come in the order of a pass.
  void begin_with_first_module(std::size_t i) {
    const std::int64_t earliest = i > 0 ? step(i - 1).begin_ns : INT64_MIN;
    const auto after = std::ranges::upper_bound(outermost_.begin_ns, step(i).begin_ns);
    auto at = static_cast<std::size_t>(after - outermost_.begin_ns.begin());
    if (at == 0 || outermost_.begin_ns[at - 1] <= earliest) return;
    --at;
    while (at > 0 && outermost_.rank[at - 1] < outermost_.rank[at] && outermost_.begin_ns[at - 1] > earliest) --at;
    step(i).begin_ns = std::min(step(i).begin_ns, outermost_.begin_ns[at]);
    if (i > 0) step(i - 1).end_ns = std::min(step(i - 1).end_ns, step(i).begin_ns);
  }

  void take_in(std::size_t i) {
    RangePlace& place = classified_.places[i];
    if (place.step != kNone || place.kind == RangeKind::kStage || place.kind == RangeKind::kStep) return;
    const std::int64_t at_ns = ranges_.begin_ns[i];
    const auto after = std::upper_bound(steps_.begin(), steps_.end(), at_ns, [&](std::int64_t ns, std::int32_t index) {
      return ns < classified_.steps[index].begin_ns;
    });
    if (after == steps_.begin()) return;
    const Step& found = classified_.steps[static_cast<std::size_t>(*std::prev(after))];
    if (at_ns >= found.end_ns) return;
    place.step = *std::prev(after);
    place.stage = found.stage;
  }

  const Ranges& ranges_;
  Classified& classified_;
  std::size_t begin_, end_;
  std::vector<std::int32_t> steps_;  // inferred ones of the thread, by begin
  Outermost outermost_;
};

// A thread without steps works for those of others: PyTorch's engine runs the backward pass that another thread waits
// for. Its ranges belong to the step of the process that lasts then.
void adopt_by_time(const Ranges& ranges, const StepWindows& windows, std::size_t begin, std::size_t end,
                   Classified& classified) {
  for (std::size_t i = begin; i < end; ++i) {
    RangePlace& place = classified.places[i];
    if (place.step != kNone || place.kind != RangeKind::kModule) continue;
    place.step = windows.containing(ranges.process_id[i], ranges.begin_ns[i]);
    if (place.step != kNone) place.stage = classified.steps[place.step].stage;
  }
}

}  // namespace

void adopt_ranges(const Ranges& ranges, Classified& classified) {
  for (std::size_t begin = 0, end = 0; begin < ranges.size(); begin = end) {
    for (end = begin; end < ranges.size() && ranges.thread_id[end] == ranges.thread_id[begin];) ++end;
    Thread(ranges, classified, begin, end).adopt();
  }
  const StepWindows windows(classified.steps);
  std::set<std::int64_t> own;  // threads with steps
  for (const Step& step : classified.steps) own.insert(step.thread_id);
  for (std::size_t begin = 0, end = 0; begin < ranges.size(); begin = end) {
    for (end = begin; end < ranges.size() && ranges.thread_id[end] == ranges.thread_id[begin];) ++end;
    if (!own.contains(ranges.thread_id[begin])) adopt_by_time(ranges, windows, begin, end, classified);
  }
}

}  // namespace llmprof::analyze
