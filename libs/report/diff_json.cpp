#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "report/diff.h"
#include "report/plot.h"
#include "report/with_unit.h"

namespace llmprof::report {
namespace {

using base::Json;
using base::maybe;
using base::text_or_null;

Json reasons_json(const std::vector<analyze::Reason>& reasons) {
  Json out = Json::array();
  for (const analyze::Reason& reason : reasons) {
    out.push_back({{"kind", reason.kind}, {"text", reason.text}, {"ns", reason.ns}});
  }
  return out;
}

Json row_json(const analyze::DiffRow& row, bool cause) {
  Json why = Json::array();
  for (const analyze::Reason& reason : row.why) why.push_back(reason.text);
  return {{"kind", row.kind},
          {"name", row.name},
          {"stage", text_or_null(row.stage)},
          {"unit", row.unit},
          {"before", maybe(row.before)},
          {"after", maybe(row.after)},
          {"change", maybe(row.change.ratio)},
          {"mean_change", maybe(row.mean_change)},
          {"low", maybe(row.change.low)},
          {"high", maybe(row.change.high)},
          {"p", maybe(row.change.p)},
          {"adjusted_p", maybe(row.adjusted_p)},
          {"significant", row.significant},
          {"better", row.better},
          {"cause", cause},
          {"note", text_or_null(row.note)},
          {"why", std::move(why)},
          {"reasons", reasons_json(row.why)}};
}

Json gate_json(const analyze::GateResult& result) {
  return {{"gate", result.gate.text},
          {"measure", result.gate.measure},
          {"operator", result.gate.op},
          {"limit", result.gate.limit},
          {"relative", result.gate.relative},
          {"passed", result.passed},
          {"unit", result.unit},
          {"before", maybe(result.before)},
          {"after", maybe(result.after)},
          {"change", maybe(result.change.ratio)},
          {"low", maybe(result.change.low)},
          {"high", maybe(result.change.high)},
          {"significant", result.significant},
          {"why", text_or_null(result.why)}};
}

std::string failure(const analyze::GateResult& result) {
  if (!result.why.empty()) return result.why;
  std::string text = "it is " + with_unit(*result.after, result.unit);
  if (!result.gate.relative) return text;
  return text + fmt::format(", {:+.2f} % against {}{}", *result.change.ratio * 100,
                            with_unit(*result.before, result.unit),
                            result.significant ? "" : ", which is no significant change");
}

}  // namespace

void to_json(const DiffPage& page, base::Json& out) {
  const analyze::Diff& diff = page.diff;
  out["before"] = page.compared ? Json(diff.before) : Json(nullptr);
  out["after"] = diff.after;
  out["headline"] = diff.headline;
  out["warnings"] = diff.warnings;
  out["least"] = diff.least;
  out["repeated"] = diff.repeated;
  const auto failed = [](const analyze::GateResult& result) { return !result.passed; };
  out["passed"] = std::none_of(page.gates.begin(), page.gates.end(), failed);
  out["gates"] = Json::array();
  for (const analyze::GateResult& result : page.gates) out["gates"].push_back(gate_json(result));
  out["rows"] = Json::array();
  for (std::size_t i = 0; i < diff.rows.size(); ++i) {
    out["rows"].push_back(
        row_json(diff.rows[i], std::find(diff.causes.begin(), diff.causes.end(), i) != diff.causes.end()));
  }
  if (!out.contains("flame")) out["flame"] = nullptr;
}

std::string gates_junit(const DiffPage& page) {
  std::string cases;
  std::size_t failures = 0;
  for (const analyze::GateResult& result : page.gates) {
    cases += fmt::format("  <testcase classname=\"llmprof.diff\" name=\"{}\"", svg_escaped(result.gate.text));
    if (result.passed) {
      cases += "/>\n";
      continue;
    }
    ++failures;
    cases += fmt::format(">\n    <failure message=\"{}\"/>\n  </testcase>\n", svg_escaped(failure(result)));
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"llmprof diff\" tests=\"{}\" "
      "failures=\"{}\">\n{}</testsuite>\n",
      page.gates.size(), failures, cases);
}

}  // namespace llmprof::report
