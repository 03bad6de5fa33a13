#include "report/measures_json.h"

#include <fmt/format.h>

#include "base/json.h"

namespace llmprof::report {
namespace {

constexpr std::string_view kBegin = "<!-- measures: made from the catalogue by `make docs` -->";
constexpr std::string_view kEnd = "<!-- /measures -->";

std::string unit_text(std::string_view unit) {
  return unit == "1" ? "fraction" : unit.empty() ? "number" : std::string(unit);
}

std::string reference() {
  std::string text = "| measure | unit | better | source | meaning | formula |\n|---|---|---|---|---|---|\n";
  for (const analyze::MeasureKind& kind : analyze::measure_kinds()) {
    text += fmt::format("| `{}` | {} | {} | {} | {} | {} |\n", kind.name, unit_text(kind.unit),
                        better_text(kind.better), kind.source, kind.meaning, kind.formula);
  }
  return text;
}

}  // namespace

std::string_view better_text(analyze::Better better) {
  switch (better) {
    case analyze::Better::kLower:
      return "lower";
    case analyze::Better::kHigher:
      return "higher";
    case analyze::Better::kNeither:
      return "neither";
  }
  return "neither";
}

base::Json measure_json(const analyze::Measure& measure) {
  const analyze::MeasureKind& kind = *measure.kind;
  return {{"name", measure.full_name()},
          {"scope", measure.scope},
          {"value", base::maybe(measure.value)},
          {"unit", kind.unit},
          {"source", kind.source},
          {"better", better_text(kind.better)},
          {"meaning", kind.meaning},
          {"formula", kind.formula},
          {"of", base::text_or_null(measure.of)},
          {"why", base::text_or_null(measure.why)}};
}

base::Json measures_json(const analyze::Summary& summary, const std::string& stage) {
  base::Json out = base::Json::array();
  for (const analyze::Measure& measure : analyze::measures(summary)) {
    if (stage.empty() || measure.scope == stage || measure.scope == "run") out.push_back(measure_json(measure));
  }
  return out;
}

std::string with_current_measures(std::string page) {
  const std::size_t begin = page.find(kBegin);
  const std::size_t end = page.find(kEnd);
  if (begin == std::string::npos || end == std::string::npos || end < begin) return page;
  return page.replace(begin, end - begin, fmt::format("{}\n\n{}\n", kBegin, reference()));
}

}  // namespace llmprof::report
