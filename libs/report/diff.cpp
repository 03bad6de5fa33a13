#include "report/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/human.h"
#include "base/text_table.h"
#include "report/layout.h"
#include "report/plot.h"
#include "report/table.h"

namespace llmprof::report {
namespace {

using analyze::Diff;
using analyze::DiffRow;
using base::Json;

std::string signed_percent(std::optional<double> fraction) {
  return fraction ? fmt::format("{:+.1f} %", *fraction * 100) : "-";
}

std::string interval_text(const analyze::Change& change) {
  if (!change.low || !change.high || *change.low == *change.high) return "-";
  return fmt::format("{:+.1f} … {:+.1f}", *change.low * 100, *change.high * 100);
}

std::string verdict(const DiffRow& row) {
  if (row.significant) return row.better == "neither" ? "changed" : row.better;
  if (!row.note.empty()) return row.note.substr(0, row.kind == "measure" ? row.note.find(':') : row.note.size());
  return row.change.low ? "no" : "not judged";
}

// Rows of changes; `kind` is the title of their names.
class Changes {
 public:
  explicit Changes(const char* kind) : kind_(kind) {}
  void add(const DiffRow& row, const std::string& label) {
    rows_.push_back(described_fields("llmprof.diff.rows[]", row));
    rows_.back()["label"] = label, rows_.back()["interval"] = interval_text(row.change);
    rows_.back()["verdict"] = verdict(row);
  }
  std::size_t size() const { return rows_.size(); }
  std::string text(const char* title, const Style& style) const {
    return style.heading(title) +
           TableText(rows_).rows("llmprof.diff.rows[]#changes", rows_, SIZE_MAX,
                                 {{.key = "label", .title = kind_, .format = "text", .wide = true}});
  }

 private:
  const char* kind_;
  Json rows_ = Json::array();
};

std::string gate_line(const analyze::GateResult& result, const Style& style) {
  const std::string verdict = result.passed ? "pass" : style.warning("FAIL");
  std::string text = fmt::format("  {}  {}: ", verdict, base::printable(result.gate.text));
  if (!result.why.empty()) return text + base::printable(result.why) + "\n";
  if (!result.gate.relative) return text + "it is " + with_unit(*result.after, result.unit) + "\n";
  text += fmt::format("{} ({} -> {}", signed_percent(result.change.ratio), with_unit(*result.before, result.unit),
                      with_unit(*result.after, result.unit));
  if (result.change.low) text += fmt::format(", 95 % interval {} %", interval_text(result.change));
  return text + (result.significant ? "), a significant change\n" : "), no significant change\n");
}

std::string gates_section(const DiffPage& page, const Style& style) {
  if (page.gates.empty()) return "";
  std::string text = style.heading("Gates");
  for (const analyze::GateResult& result : page.gates) text += gate_line(result, style);
  return text;
}

std::string stages_section(const Diff& diff, const Style& style) {
  Changes changes("stage");
  for (const DiffRow& row : diff.rows) {
    if (row.kind == "stage") changes.add(row, row.name);
  }
  if (changes.size() == 0) return "";
  return changes.text("Stages", style) +
         wrapped(
             "Median time of a step; of decode, from token to token. significant: beyond chance at 5 % (corrected for "
             "the number "
             "of rows) and at least " +
             base::human_percent(diff.least) + ".");
}

std::string reason_lines(const std::vector<analyze::Reason>& reasons, std::size_t most) {
  std::string text;
  for (std::size_t i = 0; i < std::min(most, reasons.size()); ++i) {
    text += wrapped(
        fmt::format("{}: {}", reasons[i].ns == 0 ? "-" : (reasons[i].ns > 0 ? "+" : "") + base::human_ns(reasons[i].ns),
                    reasons[i].text),
        6);
  }
  return text;
}

// Stages that changed, and the modules they changed in.
std::string why_section(const Diff& diff, std::size_t top, const Style& style) {
  std::string text;
  const auto line = [&](const DiffRow& row) {
    text +=
        wrapped(fmt::format("{}{}: {} a step ({})", row.kind == "stage" ? "" : row.stage + " › ", row.name,
                            (*row.after > *row.before ? "+" : "") + base::human_ns((*row.after - *row.before) * 1e9),
                            signed_percent(row.change.ratio)));
    const double median = *row.after - *row.before;
    if (row.mean_change && std::fabs(*row.mean_change - median) > 0.2 * std::fabs(median)) {
      text += wrapped(fmt::format("On average {}{}: single steps changed otherwise. The reasons are averages.",
                                  *row.mean_change > 0 ? "+" : "", base::human_ns(*row.mean_change * 1e9)),
                      6);
    }
    text += reason_lines(row.why, 5);
  };
  for (const DiffRow& row : diff.rows) {
    if (row.kind == "stage" && row.significant) line(row);
  }
  std::size_t shown = 0;
  for (const std::size_t index : diff.causes) {
    const DiffRow& row = diff.rows[index];
    if (row.before && row.after && shown++ < top) line(row);
  }
  return text.empty() ? "" : style.heading("What changed, and why") + text;
}

std::string parts_section(const Diff& diff, std::string_view kind, const char* title, std::size_t top,
                          const Style& style) {
  Changes changes(kind == "shape" ? "stage, shape" : kind == "module" ? "stage, module" : "stage, operator");
  std::size_t more = 0, quiet = 0;
  for (const DiffRow& row : diff.rows) {
    if (row.kind != kind || row.stage == "load" || row.stage == "warm-up") continue;  // other work every time
    const bool one_sided = !row.before || !row.after;
    if (!row.significant && !one_sided) {
      ++quiet;
    } else if (changes.size() < top) {
      changes.add(row, row.stage + " › " + row.name);
    } else {
      ++more;
    }
  }
  if (changes.size() == 0) return "";
  std::string rest = fmt::format("{} others without a significant change.", quiet);
  if (more > 0) rest = fmt::format("{} more that changed (--top shows more), ", more) + rest;
  return changes.text(title, style) + wrapped(rest);
}

constexpr std::string_view kShownMeasures[] = {"wall",
                                               "device_memory_peak",
                                               "host_memory_peak",
                                               "ttft",
                                               "tpot_p50",
                                               "tpot_p99",
                                               "tokens_per_s",
                                               "busy",
                                               "mfu",
                                               "mbu",
                                               "of_floor",
                                               "kernels_per_step",
                                               "joules_per_token",
                                               "sm_clock"};

std::string measures_section(const Diff& diff, const Style& style) {
  Changes changes("measure");
  for (const DiffRow& row : diff.rows) {
    const std::string_view name = std::string_view(row.name).substr(row.name.find('.') + 1);
    const bool usual =
        std::find(std::begin(kShownMeasures), std::end(kShownMeasures), name) != std::end(kShownMeasures);
    if (row.kind != "measure" || (!usual && !row.significant)) continue;
    if (row.stage == "load" || row.stage == "warm-up") continue;
    changes.add(row, row.name);
  }
  if (changes.size() == 0) return "";
  return changes.text("Measures", style) +
         wrapped("not judged: one number each, nothing tells its spread; repeats would.");
}

Json row_json(const DiffRow& row, bool cause) {
  Json all = base::fields_json(row);
  all["reasons"] = std::move(all["why"]);
  all["why"] = Json::array();
  for (const analyze::Reason& reason : row.why) all["why"].push_back(reason.text);
  all["cause"] = cause;
  return all;
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

std::string to_text(const DiffPage& page, bool colour) {
  const Style style{colour};
  const Diff& diff = page.diff;
  if (!page.compared) return wrapped(diff.after, 0) + gates_section(page, style);
  std::string text =
      wrapped("before  " + diff.before, 0) + wrapped("after   " + diff.after, 0) + "\n" + wrapped(diff.headline, 0);
  for (const std::string& warning : diff.warnings) text += wrapped("Note: " + warning + ".");
  text += gates_section(page, style);
  text += stages_section(diff, style);
  text += why_section(diff, page.top, style);
  text += parts_section(diff, "module", "Modules", page.top, style);
  text += parts_section(diff, "operator", "Operators", page.top, style);
  text += parts_section(diff, "shape", "Matrix products", page.top, style);
  text += measures_section(diff, style);
  return text;
}

std::string to_text(const std::vector<analyze::BaselineEntry>& entries) {
  if (entries.empty()) return "There are no baselines; llmprof diff --save-baseline NAME RUN... makes one.\n";
  Json rows = base::fields_json(entries);
  for (Json& row : rows) row["runs"] = row["folders"].size();
  return TableText(rows, {}, SIZE_MAX, 0).rows("llmprof.baselines[]", rows);
}

void to_json(const DiffPage& page, base::Json& out) {
  const analyze::Diff& diff = page.diff;
  Json all = {{"before", page.compared ? Json(diff.before) : Json(nullptr)},
              {"after", diff.after},
              {"headline", diff.headline},
              {"warnings", diff.warnings},
              {"least", diff.least},
              {"repeated", diff.repeated},
              {"passed", std::ranges::all_of(page.gates, &analyze::GateResult::passed)},
              {"gates", base::fields_json(page.gates)},
              {"rows", Json::array()},
              {"flame", out.contains("flame") ? Json(out["flame"]) : Json(nullptr)}};
  for (std::size_t i = 0; i < diff.rows.size(); ++i)
    all["rows"].push_back(row_json(diff.rows[i], std::ranges::find(diff.causes, i) != diff.causes.end()));
  out.update(described("llmprof.diff", all));
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
