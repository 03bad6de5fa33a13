#include "report/explain.h"

#include <fmt/format.h>

#include <algorithm>

#include "analyze/measures/measures.h"
#include "analyze/rules/rule.h"
#include "base/json.h"
#include "base/strings.h"
#include "base/text_table.h"
#include "report/diagnosis_text.h"
#include "report/explain_rows.h"
#include "report/measures_json.h"
#include "report/with_unit.h"

namespace llmprof::report {
namespace {

using analyze::Finding;
using analyze::Measure;
using analyze::MeasureKind;
using analyze::Rule;
using analyze::RuleOutcome;

// What a name stands for: measures of one kind, or one rule, or nothing.
struct Meant {
  const MeasureKind* kind = nullptr;
  std::vector<Measure> measures;  // of the run
  const Rule* rule = nullptr;
  const RuleOutcome* outcome = nullptr;
  std::vector<const Finding*> findings;
  bool any() const { return kind != nullptr || rule != nullptr || outcome != nullptr; }
};

std::vector<Measure> measures_of(const Page* page) {
  return page == nullptr ? std::vector<Measure>() : analyze::measures(page->summary);
}

std::vector<std::string> known_names(const Page* page) {
  std::vector<std::string> names;
  for (const Measure& measure : measures_of(page)) names.push_back(measure.full_name());
  for (const MeasureKind& kind : analyze::measure_kinds()) names.emplace_back(kind.name);
  for (const Rule* rule : analyze::rules()) names.emplace_back(rule->name);
  return names;
}

// The name of a stage may be one that this run does not have.
bool of_run(std::string_view name, const Page* page) {
  if (page == nullptr || name.find('.') == std::string_view::npos) return true;
  const std::vector<Measure> all = measures_of(page);
  return analyze::find_measure(all, name) != nullptr;
}

Meant meant_by(std::string_view name, const Page* page) {
  Meant meant;
  meant.rule = analyze::find_rule(name);
  if (page != nullptr) {
    for (const RuleOutcome& outcome : page->summary.diagnosis.rules) {
      if (outcome.rule == name) meant.outcome = &outcome;
    }
    for (const Finding& finding : page->summary.diagnosis.findings) {
      if (finding.rule == name) meant.findings.push_back(&finding);
    }
  }
  if (meant.any() || !of_run(name, page)) return meant;
  meant.kind = analyze::find_measure_kind(name);
  for (Measure& measure : measures_of(page)) {
    if (measure.full_name() == name || measure.kind->name == name) meant.measures.push_back(std::move(measure));
  }
  return meant;
}

// The nearest by letters, and those that contain the word.
std::string near_names(std::string_view name, const Page* page) {
  struct Near {
    std::size_t edits;
    std::string name;
  };
  std::vector<Near> near;
  for (std::string& known : known_names(page)) {
    const bool inside = name.size() > 2 && known.find(name) != std::string::npos;
    const std::size_t edits = inside ? 1 : base::edits(name, known);
    if (edits <= std::max<std::size_t>(2, name.size() / 3)) near.push_back({edits, std::move(known)});
  }
  std::stable_sort(near.begin(), near.end(), [](const Near& a, const Near& b) { return a.edits < b.edits; });
  std::string out;
  for (std::size_t i = 0; i < std::min<std::size_t>(near.size(), 6); ++i)
    out += (out.empty() ? "" : ", ") + near[i].name;
  return out;
}

Error unknown(std::string_view name, const Page* page) {
  const std::string near = near_names(name, page);
  return {ErrorCode::kUsage, fmt::format("--explain {}: neither a measure nor a rule", base::printable(name)),
          near.empty() ? "--explain list names all" : fmt::format("near: {}; --explain list names all", near)};
}

std::string measure_text(const Measure& measure) {
  if (!measure.value) return "unknown: " + measure.why;
  const std::string value = with_unit(*measure.value, measure.kind->unit);
  return measure.of.empty() ? value : fmt::format("{} of {}", value, measure.of);
}

std::string kind_text(const MeasureKind& kind, const Style& style) {
  std::string out = style.heading(kind.name) + wrapped(fmt::format("{}.", kind.meaning));
  out += wrapped(fmt::format("formula: {}", kind.formula));
  const std::string_view unit = kind.unit == "1" ? "a share, shown in %" : kind.unit.empty() ? "a number" : kind.unit;
  out += wrapped(fmt::format("unit: {}; source: {}; better: {}", unit, kind.source, better_text(kind.better)));
  return out;
}

std::string measure_text(const Page* page, const Meant& meant, const Style& style) {
  std::string out = kind_text(*meant.kind, style).substr(1);
  if (page == nullptr) return out;
  out += wrapped(fmt::format("in {}:", page->run));
  if (meant.measures.empty()) out += wrapped("no stage that has it", 4);
  for (const Measure& measure : meant.measures)
    out += wrapped(fmt::format("{} = {}", measure.full_name(), measure_text(measure)), 4);
  for (const Measure& measure : meant.measures) {
    const std::string rows = rows_behind(measure);
    if (rows.empty()) continue;
    out += wrapped("rows behind it:") + wrapped(fmt::format("llmprof query {} \"{}\"", page->run, rows), 4);
    break;
  }
  return out;
}

std::string rule_text(std::string_view name, const Page* page, const Meant& meant, const Style& style) {
  std::string out = style.heading(name).substr(1);
  if (meant.rule != nullptr) {
    out += wrapped(meant.rule->title) + wrapped(meant.rule->meaning) +
           wrapped(fmt::format("For stages: {}.", meant.rule->stages.empty() ? "any" : meant.rule->stages));
  }
  if (page == nullptr) return out;
  if (meant.outcome != nullptr) {
    out += wrapped(fmt::format("in {}: {}{}{}", page->run, meant.outcome->outcome,
                               meant.outcome->why.empty() ? "" : ": ", meant.outcome->why));
  }
  for (const Finding* finding : meant.findings) out += "\n" + full_finding(*page, *finding, style);
  return out;
}

std::string list_text(const Page* page, const Style& style) {
  std::string out = style.heading("Measures").substr(1);
  if (page == nullptr) {
    base::TextTable table({{"name", base::Align::kLeft}, {"meaning", base::Align::kLeft, true}});
    for (const MeasureKind& kind : analyze::measure_kinds())
      table.add({std::string(kind.name), std::string(kind.meaning)});
    out += table.render(kWidth);
  } else {
    base::TextTable table({{"name", base::Align::kLeft}, {"value"}, {"meaning", base::Align::kLeft, true}});
    for (const Measure& measure : measures_of(page)) {
      table.add({measure.full_name(), measure.value ? with_unit(*measure.value, measure.kind->unit) : "-",
                 std::string(measure.kind->meaning)});
    }
    out += table.render(kWidth);
  }
  out += style.heading("Rules");
  base::TextTable table(
      {{"name", base::Align::kLeft}, {"outcome", base::Align::kLeft}, {"title", base::Align::kLeft, true}});
  for (const Rule* rule : analyze::rules()) {
    const Meant meant = meant_by(rule->name, page);
    table.add(
        {std::string(rule->name), meant.outcome != nullptr ? meant.outcome->outcome : "-", std::string(rule->title)});
  }
  return out + (table.rows() > 0 ? table.render(kWidth) : wrapped("none"));
}

base::Json kind_json(const MeasureKind& kind) {
  return {{"name", kind.name},       {"unit", kind.unit},
          {"source", kind.source},   {"better", better_text(kind.better)},
          {"meaning", kind.meaning}, {"formula", kind.formula}};
}

base::Json rule_json(const Rule& rule, const RuleOutcome* outcome) {
  return {{"rule", rule.name},
          {"title", rule.title},
          {"meaning", rule.meaning},
          {"stages", rule.stages},
          {"outcome", outcome == nullptr ? base::Json(nullptr) : base::Json(outcome->outcome)},
          {"why", outcome == nullptr ? base::Json(nullptr) : base::text_or_null(outcome->why)}};
}

}  // namespace

Result<std::string> explain(std::string_view name, const Page* page, const Style& style) {
  if (name == "list") return list_text(page, style);
  const Meant meant = meant_by(name, page);
  if (!meant.any()) return unknown(name, page);
  return meant.kind != nullptr ? measure_text(page, meant, style) : rule_text(name, page, meant, style);
}

Result<void> explain(std::string_view name, const Page* page, base::Json& out) {
  const bool all = name == "list";
  const Meant meant = all ? Meant{} : meant_by(name, page);
  if (!all && !meant.any()) return unknown(name, page);
  out["measures"] = base::Json::array();
  out["rules"] = base::Json::array();
  if (page == nullptr) {
    for (const MeasureKind& kind : analyze::measure_kinds()) {
      if (all || &kind == meant.kind || (meant.kind != nullptr && kind.name == meant.kind->name))
        out["measures"].push_back(kind_json(kind));
    }
  } else {
    for (const Measure& measure : all ? measures_of(page) : meant.measures) {
      base::Json one = measure_json(measure);
      one["rows"] = base::text_or_null(rows_behind(measure));
      out["measures"].push_back(std::move(one));
    }
  }
  for (const Rule* rule : analyze::rules()) {
    if (all || rule == meant.rule) out["rules"].push_back(rule_json(*rule, meant_by(rule->name, page).outcome));
  }
  return {};
}

}  // namespace llmprof::report
