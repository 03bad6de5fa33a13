#include "analyze/passes/attribute.h"

#include <algorithm>

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
                         const ShapeMatches& matches,
                         const std::unordered_map<std::int64_t, std::int64_t>& process_of_thread,
                         trace::Strings& strings)
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
      by_shape_(strings.intern("shape")) {}

Attribution::Where Attribution::locate(std::int64_t thread_id, std::int64_t at_ns) {
  Where where{.range = timelines_.innermost(thread_id, at_ns)};
  if (where.range != kNone) where.step = classified_.places[where.range].step;
  if (where.step != kNone || windows_.declares_steps(thread_id)) return where;
  const auto process = process_of_thread_.find(thread_id);
  if (process != process_of_thread_.end()) where.step = windows_.containing(process->second, at_ns);
  where.inferred = where.step != kNone;
  return where;
}

std::optional<std::size_t> Attribution::gemm_of(std::int64_t kernel_id) {
  const std::size_t place =
      find_last_at_most(gemms_.kernel_id.data(), gemms_.kernel_id.size(), kernel_id, gemm_cursor_);
  if (place == kNotFound || gemms_.kernel_id[place] != kernel_id) return std::nullopt;
  return place;
}

// A range that names a module knows better; a step that a range declares does, too.
void Attribution::use_match(std::size_t gemm, const Where& where, trace::AttributionRow& row) {
  if (matches_.module.empty() || matches_.module[gemm].id == 0 || row.module.id != 0) return;
  row.module = matches_.module[gemm];
  row.op = operators_.of(row.module);
  row.module_source = by_shape_;
  row.source = inferred_;
  const double found = matches_.confidence[gemm];
  row.confidence = where.step != kNone && !where.inferred ? std::min(row.confidence, found) : found;
}

template <class Row>
void Attribution::describe(const Where& where, Row& row) {
  row.confidence = 0;
  if (where.range != kNone) {
    const RangePlace& place = classified_.places[where.range];
    row.range_id = ranges_.id[where.range];
    row.stage = place.stage;
    row.module = place.module;
    row.op = operators_.of(place.module);
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
  describe(locate(thread_id, at_ns), row);
  return row;
}

void Attribution::attribute(const Kernels& kernels, std::vector<trace::AttributionRow>& rows) {
  rows.reserve(rows.size() + kernels.size());
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const std::int64_t launched =
        kernels.launch_begin_ns[i] != kNull ? kernels.launch_begin_ns[i] : kernels.begin_ns[i];
    const std::int64_t duration_ns = kernels.end_ns[i] - kernels.begin_ns[i];
    Where where = locate(kernels.thread_id[i], launched);
    const std::optional<std::size_t> gemm = gemm_of(kernels.id[i]);
    if (gemm && !matches_.step.empty() && matches_.step[*gemm] != kNone) where.step = matches_.step[*gemm];
    trace::AttributionRow row{.kernel_id = kernels.id[i]};
    describe(where, row);
    if (row.module.id != 0) row.module_source = by_range_;
    if (gemm) {
      row.gemm_id = gemms_.gemm_id[*gemm];
      use_match(*gemm, where, row);
    }
    if (where.range != kNone) range_kernel_ns[where.range] += duration_ns;
    if (where.step != kNone) {
      ++step_kernels[where.step];
      step_kernel_ns[where.step] += duration_ns;
    }
    rows.push_back(row);
  }
}

}  // namespace llmprof::analyze
