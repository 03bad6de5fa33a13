#include "analyze/measures/measures.h"

#include <algorithm>

#include "analyze/measures/measure_values.h"

namespace llmprof::analyze {

namespace {

std::string_view without_scope(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? name : name.substr(dot + 1);
}

Measure measure_of(const MeasureRow& row, std::string scope, const MeasureFrom& from) {
  MeasureValue value = row.value(from);
  return {&row.kind, std::move(scope), value.value, std::move(value.of), std::move(value.why)};
}

template <class Rows, class Is>
auto find_row(const Rows& rows, const Is& is) -> decltype(rows.data()) {
  const auto found = std::find_if(rows.begin(), rows.end(), is);
  return found == rows.end() ? nullptr : &*found;
}

}  // namespace

std::span<const MeasureKind> measure_kinds() {
  static const std::vector<MeasureKind> kinds = [] {
    std::vector<MeasureKind> all;
    for (const MeasureRow& row : stage_measure_rows()) all.push_back(row.kind);
    for (const MeasureRow& row : counted_measure_rows()) all.push_back(row.kind);
    for (const auto rows : {run_measure_rows(), request_measure_rows()}) {
      for (const MeasureRow& row : rows) {
        if (!find_row(all, [&](const MeasureKind& kind) { return kind.name == row.kind.name; }))
          all.push_back(row.kind);
      }
    }
    return all;
  }();
  return kinds;
}

const MeasureKind* find_measure_kind(std::string_view name) {
  const bool of_run = name.starts_with("run."), of_requests = name.starts_with("requests.");
  const auto is = [name = without_scope(name)](const MeasureRow& row) { return row.kind.name == name; };
  const auto first = of_run ? run_measure_rows() : stage_measure_rows();
  const auto second = of_run ? stage_measure_rows() : run_measure_rows();
  if (const MeasureRow* row = of_requests ? find_row(request_measure_rows(), is) : nullptr) return &row->kind;
  if (const MeasureRow* row = find_row(first, is)) return &row->kind;
  const MeasureRow* row = find_row(second, is);
  if (row == nullptr) row = find_row(counted_measure_rows(), is);
  if (row == nullptr) row = find_row(request_measure_rows(), is);
  return row == nullptr ? nullptr : &row->kind;
}

std::vector<Measure> measures(const Summary& summary) {
  std::vector<Measure> all;
  for (const MeasureRow& row : run_measure_rows()) all.push_back(measure_of(row, "run", {.summary = summary}));
  if (summary.requests.count > 0) {
    for (const MeasureRow& row : request_measure_rows())
      all.push_back(measure_of(row, "requests", {.summary = summary}));
  }
  for (const Stage& stage : summary.stages) {
    const MeasureFrom from{
        .summary = summary,
        .stage = &stage,
        .telemetry = find_row(summary.telemetry.stages, [&](const auto& each) { return each.stage == stage.name; }),
        .waterfall = find_row(summary.waterfalls, [&](const auto& each) { return each.stage == stage.name; }),
        .counted = find_row(summary.counters.stages, [&](const auto& each) { return each.stage == stage.name; })};
    for (const MeasureRow& row : stage_measure_rows()) {
      if (row.only_stage.empty() || row.only_stage == stage.name) all.push_back(measure_of(row, stage.name, from));
    }
    if (from.counted == nullptr) continue;
    for (const MeasureRow& row : counted_measure_rows()) all.push_back(measure_of(row, stage.name, from));
  }
  return all;
}

const Measure* find_measure(const std::vector<Measure>& all, std::string_view full_name) {
  return find_row(all, [&](const Measure& measure) { return measure.full_name() == full_name; });
}

}  // namespace llmprof::analyze
