#include "report/diagnosis_json.h"

#include <fmt/format.h>

#include "analyze/rules/rule.h"
#include "base/json.h"

namespace llmprof::report {
namespace {

using base::Json;
using base::text_or_null;

constexpr std::string_view kBegin = "<!-- rules: made from the registry by `make docs` -->";
constexpr std::string_view kEnd = "<!-- /rules -->";

const char* severity_text(analyze::Severity severity) {
  switch (severity) {
    case analyze::Severity::kHigh:
      return "high";
    case analyze::Severity::kMedium:
      return "medium";
    case analyze::Severity::kLow:
      return "low";
    case analyze::Severity::kNote:
      return "note";
  }
  return "note";
}

Json evidence_json(const analyze::Evidence& evidence) {
  return {{"name", evidence.name},
          {"what", evidence.what},
          {"value", base::maybe(evidence.value)},
          {"unit", evidence.unit},
          {"source", evidence.source},
          {"of", text_or_null(evidence.of)},
          {"rows", text_or_null(evidence.rows)},
          {"why", text_or_null(evidence.why)}};
}

Json gain_json(const analyze::Gain& gain) {
  return {{"ns", gain.ns}, {"of_ns", gain.of_ns}, {"upper_bound", gain.upper_bound}, {"how", gain.how}};
}

Json finding_json(const analyze::Finding& finding) {
  Json out = {{"rule", finding.rule},
              {"stage", text_or_null(finding.stage)},
              {"part", text_or_null(finding.part)},
              {"verdict", finding.verdict == analyze::Verdict::kFound ? "found" : "inconclusive"},
              {"severity", severity_text(finding.severity)},
              {"title", finding.title},
              {"text", finding.text},
              {"gain", finding.gain ? gain_json(*finding.gain) : Json()},
              {"evidence", Json::array()},
              {"advice", finding.advice},
              {"next", text_or_null(finding.next)}};
  for (const analyze::Evidence& evidence : finding.evidence) out["evidence"].push_back(evidence_json(evidence));
  return out;
}

}  // namespace

Json diagnosis_json(const analyze::Diagnosis& diagnosis, const std::string& stage) {
  Json out = {{"headline", diagnosis.headline}, {"findings", Json::array()}, {"rules", Json::array()}};
  for (const analyze::Finding& finding : diagnosis.findings) {
    if (stage.empty() || finding.stage.empty() || finding.stage == stage)
      out["findings"].push_back(finding_json(finding));
  }
  for (const analyze::RuleOutcome& rule : diagnosis.rules) {
    const analyze::Rule* known = analyze::find_rule(rule.rule);
    out["rules"].push_back({{"rule", rule.rule},
                            {"title", known == nullptr ? rule.rule : std::string(known->title)},
                            {"outcome", rule.outcome},
                            {"why", text_or_null(rule.why)}});
  }
  return out;
}

std::string with_current_rules(std::string page) {
  const std::size_t begin = page.find(kBegin);
  const std::size_t end = page.find(kEnd);
  if (begin == std::string::npos || end == std::string::npos || end < begin) return page;
  std::string text;
  for (const analyze::Rule* rule : analyze::rules())
    text += fmt::format("### {}\n\n{}. {}\n\n", rule->name, rule->title, rule->meaning);
  return page.replace(begin, end - begin, fmt::format("{}\n\n{}", kBegin, text));
}

}  // namespace llmprof::report
