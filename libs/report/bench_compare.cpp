#include <fmt/format.h>

#include <algorithm>

#include "base/human.h"
#include "base/text_table.h"
#include "report/bench.h"
#include "report/bench_group.h"
#include "report/layout.h"
#include "report/page.h"

namespace llmprof::report {
namespace {

using analyze::BenchChange;
using analyze::BenchComparison;
using analyze::BenchPoint;
using base::Align;
using base::TextTable;

std::string p_cell(double p) { return p < 0.001 ? "<0.001" : fmt::format("{:.3f}", p); }

std::string group_text(const BenchGroup& group, const BenchComparison& comparison, const Style& style) {
  std::vector<TextTable::Column> columns;
  for (const BenchColumn& column : group.columns) {
    columns.push_back({base::printable(column.title), column.text ? Align::kLeft : Align::kRight, column.elastic});
  }
  for (const char* title : {"A", "B", "B / A", "95 %", "p"}) columns.push_back({title});
  columns.push_back({"B is", Align::kLeft});
  TextTable table(std::move(columns));
  for (const BenchChange& change : comparison.changes) {
    if (change.a.op != group.op) continue;
    std::vector<std::string> cells;
    for (const BenchColumn& column : group.columns) cells.push_back(base::printable(cell_of(change.a, column)));
    cells.push_back(base::human_ns(*change.a.median_ns));
    cells.push_back(base::human_ns(*change.b.median_ns));
    cells.push_back(fmt::format("{:.3f}", change.ratio));
    cells.push_back(fmt::format("{:.3f}-{:.3f}", change.low, change.high));
    cells.push_back(p_cell(change.p));
    cells.emplace_back(analyze::verdict_name(change.verdict));
    table.add(std::move(cells));
  }
  std::string out = style.heading(base::printable(group.op));
  if (!group.fixed.empty()) out += wrapped(base::printable(group.fixed));
  return out + table.render(kWidth);
}

std::string summary(const BenchComparison& comparison) {
  const auto count = [&](analyze::BenchVerdict verdict) {
    return std::ranges::count(comparison.changes, verdict, &BenchChange::verdict);
  };
  if (!comparison.ratio) return wrapped("No point was measured in both runs.");
  return wrapped(fmt::format("Of {}: B is faster in {}, slower in {}, the same in {}. Geometric mean of B / A: {:.3f}.",
                             counted(static_cast<std::int64_t>(comparison.changes.size()), "point"),
                             count(analyze::BenchVerdict::kFaster), count(analyze::BenchVerdict::kSlower),
                             count(analyze::BenchVerdict::kSame), *comparison.ratio));
}

std::string only(const std::vector<BenchPoint>& points, std::string_view where, const Style& style) {
  if (points.empty()) return "";
  std::string out = style.heading(fmt::format("Only in {}", where));
  for (const BenchPoint& point : points) out += wrapped(base::printable(title_of(point)));
  return out;
}

}  // namespace

std::string to_text(const BenchComparePage& page, bool colour) {
  const Style style{colour};
  const BenchComparison& comparison = page.comparison;
  std::string out = style.heading("Benchmarks compared").substr(1);
  out +=
      wrapped(base::printable(fmt::format("A: {}", page.a))) + wrapped(base::printable(fmt::format("B: {}", page.b)));
  out += summary(comparison);
  for (const std::string& text : comparison.confounders) {
    out += style.warning(wrapped(base::printable("Beware: " + text + ".")));
  }
  std::vector<BenchPoint> points;
  for (const BenchChange& change : comparison.changes) points.push_back(change.a);
  for (const BenchGroup& group : groups_of(points)) out += group_text(group, comparison, style);
  if (!comparison.changes.empty()) {
    out +=
        "\n" + wrapped(fmt::format(
                   "Median times; B / A with its 95 % confidence interval; p of a Mann-Whitney test, adjusted for {} "
                   "comparisons. Faster or slower: p < 0.05 and more than {} % apart.",
                   comparison.changes.size(), base::three_digits(100 * comparison.threshold)));
  }
  if (!comparison.open.empty()) {
    out += style.heading("Not compared");
    for (const auto& [point, why] : comparison.open) {
      out += wrapped(base::printable(title_of(point))) + wrapped(base::printable(why), 6);
    }
  }
  return out + only(comparison.only_a, "A", style) + only(comparison.only_b, "B", style);
}

}  // namespace llmprof::report
