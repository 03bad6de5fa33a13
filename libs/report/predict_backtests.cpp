#include <fmt/format.h>

#include "base/human.h"
#include "base/json.h"
#include "report/layout.h"
#include "report/predict.h"
#include "report/table.h"

namespace llmprof::report {
namespace {

constexpr std::string_view kBacktest = "llmprof.predict_backtest";

std::string path_of(std::string_view rows) { return fmt::format("{}.{}[]", kBacktest, rows); }

std::string servings_text(const BacktestPage& page, const TableText& tables, const Style& style) {
  if (page.servings.empty()) return "";
  std::string out = style.heading(tables.title(path_of("servings")));
  for (const predict::ServingBacktest& each : page.servings) {
    const predict::BacktestRow row = predict::row_of(each);
    out +=
        wrapped(fmt::format(
            "{}, {}: {}, {} of {} statistics in the stated interval (steps {:.2f} to {:.2f} times as long).", row.name,
            row.basis, counted(row.requests, "request"), row.covered, row.stated, each.error.least, each.error.most)) +
        tables.rows(path_of("servings"), base::Json::array({base::fields_json(row)}));
  }
  return out;
}

std::string operators_text(const BacktestPage& page, const TableText& tables, const Style& style) {
  std::string out;
  for (const predict::ServingBacktest& each : page.servings) {
    if (each.operators.empty()) continue;
    out += style.heading(tables.title(path_of("operators"))) + wrapped(each.name) +
           tables.rows(path_of("operators"), base::fields_json(predict::operator_rows(each)));
  }
  return out;
}

std::string steps_text(const BacktestPage& page, const TableText& tables, const Style& style) {
  std::string out;
  for (const predict::StepBacktest& each : page.steps) {
    const predict::BacktestDocument one = predict::document_of({}, {each});
    out += (out.empty() ? style.heading(tables.title(path_of("steps"))) : "\n") +
           wrapped(fmt::format("{}, predicted from {}.", each.name, each.basis)) +
           tables.rows(path_of("steps"), base::fields_json(one.steps)) + "\n" +
           tables.rows(path_of("step_checks"), base::fields_json(one.step_checks));
    for (const std::string& note : each.notes) out += wrapped("Not predicted: " + note + ".");
  }
  return out.empty() ? out : out + tables.notes(path_of("step_checks"));
}

}  // namespace

std::string to_text(const BacktestPage& page, bool colour) {
  const Style style{colour};
  const predict::BacktestDocument document = predict::document_of(page.servings, page.steps);
  const base::Json nothing;
  const TableText tables(nothing);
  const auto section = [&](std::string_view key, const base::Json& rows) {
    const std::string path = path_of(key);
    return rows.empty() ? "" : style.heading(tables.title(path)) + tables.rows(path, rows) + tables.notes(path);
  };
  std::string out = servings_text(page, tables, style) + steps_text(page, tables, style);
  out += operators_text(page, tables, style);
  out += section("coverage", base::fields_json(document.coverage));
  if (!page.saved.empty())
    out += wrapped(fmt::format("Written to {}: llmprof predict --backtest {}", page.saved, page.saved));
  return out.substr(out.starts_with('\n') ? 1 : 0);
}

void to_json(const BacktestPage& page, base::Json& out) {
  predict::BacktestDocument document = predict::document_of(page.servings, page.steps);
  document.saved = page.saved;
  out.update(described_fields(kBacktest, document));
}

std::string to_text(const CalibrationPage& page, bool colour) {
  constexpr std::string_view kTerms = "llmprof.predict_calibration.terms[]";
  const predict::CalibrationDocument& d = page.document;
  const base::Json nothing;
  const TableText tables(nothing);
  std::string out = Style{colour}.heading(fmt::format("Calibrated by {}", d.run)).substr(1);
  std::string of = fmt::format(
      "{} on {}: what {} took, from the begin of one to that of the next, against the "
      "times of their operators ({}).",
      d.model, d.device, counted(d.steps, "steady step"), d.tables);
  if (d.left_out > 0)
    of += fmt::format(" Left out: {} far longer than the others, as when an engine waits for requests.",
                      counted(d.left_out, "step"));
  if (d.unknown_steps > 0)
    of += fmt::format(" {} not say what is in their batches.",
                      d.unknown_steps == 1 ? "1 step does" : fmt::format("{} steps do", d.unknown_steps));
  out += wrapped(of) + tables.rows(kTerms, base::fields_json(d.terms)) + tables.notes(kTerms);
  for (const predict::TermRow& term : d.terms) {
    if (!term.determined) out += wrapped(fmt::format("- {} is not determined: {}.", term.term, term.why));
  }
  out +=
      wrapped(fmt::format("With these terms the steps are predicted {} off at the median: the steps that they were "
                          "fitted to, so this is no back-test.",
                          base::human_percent(d.median_error)));
  return out + wrapped(fmt::format("Kept in {}. Predictions with these tables use it; --no-calibration leaves it out.",
                                   d.kept));
}

void to_json(const CalibrationPage& page, base::Json& out) {
  out.update(described_fields("llmprof.predict_calibration", page.document));
}

}  // namespace llmprof::report
