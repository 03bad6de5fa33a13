#include "report/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "analyze/measures/measures.h"
#include "analyze/rules/rule.h"
#include "base/suggest.h"
#include "base/text_table.h"
#include "report/diagnosis.h"
#include "report/layout.h"
#include "report/table.h"

namespace llmprof::report {
namespace {

using analyze::Finding;
using analyze::Measure;
using analyze::MeasureKind;
using analyze::Rule;
using analyze::RuleOutcome;
using base::Json;

// {} is the stage.
struct Behind {
  std::string_view names;  // of measures, between spaces
  std::string_view sql;
};

constexpr std::string_view kSteps =
    "SELECT number, begin_ns, end_ns, batch, tokens, context FROM step WHERE stage = '{}' ORDER BY begin_ns";
constexpr std::string_view kReadingsSql =
    "SELECT ts_ns, metric, value FROM telemetry, step WHERE stage = '{}' AND ts_ns BETWEEN begin_ns AND end_ns ORDER "
    "BY "
    "ts_ns";

constexpr std::array<Behind, 8> kOfStage{{
    {" time share_of_wall steps tokens tokens_per_s step_mean step_p50 step_p90 step_p99 ttft tpot_p50 tpot_p90 "
     "tpot_p99 "
     "joules_per_token ",
     kSteps},
    {" busy idle ", "SELECT number, begin_ns, end_ns, stage_busy_ns FROM step WHERE stage = '{}' ORDER BY begin_ns"},
    {" kernels_per_step kernel_time kernel_time_per_step estimated ",
     "SELECT name, count(*) AS kernels, sum(end_ns - begin_ns) AS ns FROM kernel JOIN attribution ON kernel_id = "
     "kernel.id "
     "WHERE stage = '{}' GROUP BY name ORDER BY ns DESC"},
    {" graphs_per_step ", "SELECT * FROM launch_place WHERE stage = '{}'"},
    {" mfu mbu flops bytes flops_per_s bytes_per_s intensity floor of_floor ",
     "SELECT o.* FROM model_op o WHERE pass_id IN (SELECT pass_id FROM step WHERE stage = '{}')"},
    {" flops_shapes ",
     "SELECT g.m, g.n, g.k, g.batch, count(*) AS calls FROM gemm g JOIN attribution USING (kernel_id) WHERE stage = "
     "'{}' "
     "GROUP BY ALL ORDER BY calls DESC"},
    {" between_steps gaps queued waits copies ",
     "SELECT t.* FROM step_time t JOIN step ON step_id = step.id WHERE stage = '{}'"},
    {" energy power sm_clock memory_clock slow_clock temperature sm_active sm_occupancy tensor_active dram_active ",
     kReadingsSql},
}};

constexpr std::array<Behind, 7> kOfRun{{
    {" in_stages ", "SELECT stage, begin_ns, end_ns FROM step ORDER BY begin_ns"},
    {" gpu_time placed estimated kernels ",
     "SELECT name, count(*) AS kernels, sum(end_ns - begin_ns) AS ns FROM kernel GROUP BY name ORDER BY ns DESC"},
    {" losses ", "SELECT * FROM loss"},
    {" device_memory_peak ", "SELECT * FROM allocation ORDER BY bytes DESC"},
    {" host_memory_peak host_cpu_time ", "SELECT * FROM process_usage ORDER BY ts_ns"},
    {" energy power highest_power ", "SELECT * FROM telemetry WHERE metric IN ('power_w', 'energy_j') ORDER BY ts_ns"},
    {" recording_delay ", "SELECT * FROM collector_cost"},
}};

template <std::size_t kCount>
std::string_view sql_of(const std::array<Behind, kCount>& all, std::string_view name) {
  const std::string word = fmt::format(" {} ", name);
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const Behind& each) { return each.names.find(word) != each.names.npos; });
  return found == all.end() ? std::string_view() : found->sql;
}

// A SELECT that lists the rows of the run which a measure was made from (llmprof query); "" where no table has them.
std::string rows_behind(const analyze::Measure& measure) {
  std::string sql(measure.scope == "run" ? sql_of(kOfRun, measure.kind->name) : sql_of(kOfStage, measure.kind->name));
  std::string stage;
  for (const char c : measure.scope) stage += c == '\'' ? "''" : std::string(1, c);
  if (const std::size_t place = sql.find("{}"); place != std::string::npos) sql.replace(place, 2, stage);
  return sql;
}

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

Error unknown(std::string_view name, const Page* page) {
  return {ErrorCode::kUsage, fmt::format("--explain {}: neither a measure nor a rule", base::printable(name)),
          base::did_you_mean(name, known_names(page), 6) + "--explain list names all"};
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
  out += wrapped(fmt::format("unit: {}; source: {}; better: {}", unit, kind.source, json_name(kind.better)));
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

Json measures_rows(const std::vector<Measure>& measures) {
  Json all = base::fields_json(measures);
  for (std::size_t i = 0; i < measures.size(); ++i) all[i]["name"] = measures[i].full_name();
  return described("measures[]", all);
}

Json rule_json(const Rule& rule, const Page* page) {
  Json all = {{"name", rule.name}, {"title", rule.title}, {"meaning", rule.meaning}, {"stages", rule.stages}};
  const RuleOutcome* outcome = meant_by(rule.name, page).outcome;
  all["outcome"] = outcome == nullptr ? Json(nullptr) : Json(outcome->outcome);
  all["why"] = outcome == nullptr ? Json(nullptr) : base::text_or_null(outcome->why);
  return described("llmprof.explain.rules[]", all);
}

std::string list_text(const Page* page, const Style& style) {
  Json document;
  (void)explain("list", page, document);
  const TableText tables(document);
  return style.heading("Measures").substr(1) +
         tables.rows(page == nullptr ? "llmprof.explain.measures[]" : "measures[]", document["measures"]) +
         style.heading("Rules") + tables.rows("llmprof.explain.rules[]#list", document["rules"]);
}

}  // namespace

std::vector<std::string> explained_names() { return known_names(nullptr); }

Result<std::string> explain(std::string_view name, const Page* page, const Style& style) {
  if (name == "list") return list_text(page, style);
  const Meant meant = meant_by(name, page);
  if (!meant.any()) return unknown(name, page);
  return meant.kind != nullptr ? measure_text(page, meant, style) : rule_text(name, page, meant, style);
}

Result<void> explain(std::string_view name, const Page* page, Json& out) {
  const bool all = name == "list";
  const Meant meant = all ? Meant{} : meant_by(name, page);
  if (!all && !meant.any()) return unknown(name, page);
  out["measures"] = Json::array();
  out["rules"] = Json::array();
  if (page == nullptr) {
    for (const MeasureKind& kind : analyze::measure_kinds()) {
      if (all || (meant.kind != nullptr && kind.name == meant.kind->name))
        out["measures"].push_back(described_fields("llmprof.explain.measures[]", kind));
    }
  } else {
    const std::vector<Measure> measures = all ? measures_of(page) : meant.measures;
    out["measures"] = measures_rows(measures);
    for (std::size_t i = 0; i < measures.size(); ++i)
      out["measures"][i]["rows"] = base::text_or_null(rows_behind(measures[i]));
  }
  for (const Rule* rule : analyze::rules()) {
    if (all || rule == meant.rule) out["rules"].push_back(rule_json(*rule, page));
  }
  return {};
}

Json measures_json(const analyze::Summary& summary, const std::string& stage) {
  std::vector<Measure> measures = analyze::measures(summary);
  std::erase_if(measures, [&](const Measure& m) { return !stage.empty() && m.scope != stage && m.scope != "run"; });
  return measures_rows(measures);
}

}  // namespace llmprof::report
