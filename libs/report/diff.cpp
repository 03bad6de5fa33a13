#include "report/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/human.h"
#include "base/strings.h"
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
  if (*change.high > 99) return "-";  // next to nothing is known
  const bool wide = *change.high >= 1;
  return fmt::format("{:+.{}f} … {:+.{}f}", *change.low * 100, wide ? 0 : 1, *change.high * 100, wide ? 0 : 1);
}

bool is_time(const DiffRow& row) { return row.unit == "s"; }

std::string verdict(const DiffRow& row) {
  if (!row.before || !row.after) return row.note.substr(0, row.note.find(':'));
  if (!row.comparable) return "other work";
  if (row.significant) {
    if (row.better == "neither") return "changed";
    if (row.kind == "pace" && row.unit == "1") return *row.change.ratio > 0 ? "higher" : "lower";
    if (is_time(row) || row.name.ends_with("per_s") || row.name == "tokens/s")
      return row.better == "better" ? "faster" : "slower";
    return row.better;
  }
  return row.change.low ? "noise" : "not judged";
}

// What a text is made for: its width, and what of the style.
struct Sheet {
  Style style;
  std::size_t width = line_width();
  std::string sentence(std::string_view text, std::size_t indent = 2) const { return wrapped(text, indent, width); }
};

// Rows of changes; `kind` is the title of their names.
class Changes {
 public:
  explicit Changes(const char* kind) : kind_(kind) {}
  void add(const DiffRow& row, std::string label) {
    if (!row.per.empty() && row.per != "step" && row.kind != "pace") label += ", per " + row.per;
    rows_.push_back(described_fields("llmprof.diff.rows[]", row));
    rows_.back()["label"] = label, rows_.back()["interval"] = interval_text(row.change);
    rows_.back()["verdict"] = verdict(row);
  }
  std::size_t size() const { return rows_.size(); }
  std::string text(const char* title, const Sheet& sheet) const {
    return sheet.style.heading(title) + TableText(rows_, {}, SIZE_MAX, 2, sheet.width)
                                            .rows("llmprof.diff.rows[]#changes", rows_, SIZE_MAX,
                                                  {{.key = "label", .title = kind_, .format = "text", .wide = true}});
  }

 private:
  const char* kind_;
  Json rows_ = Json::array();
};

std::string gate_line(const analyze::GateResult& result, const Sheet& sheet) {
  const std::string verdict = !result.passed            ? sheet.style.warning("FAIL")
                              : !result.warning.empty() ? sheet.style.warning("warn")
                                                        : "pass";
  std::string text = fmt::format("{}: ", result.gate.text);
  if (!result.why.empty()) {
    text += result.why;
  } else if (!result.gate.relative) {
    text += "it is " + with_unit(*result.after, result.unit);
  } else {
    text += fmt::format("{} ({} -> {}", signed_percent(result.change.ratio), with_unit(*result.before, result.unit),
                        with_unit(*result.after, result.unit));
    if (result.change.low) text += fmt::format(", 95 % interval {} %", interval_text(result.change));
    text += result.significant ? "), a significant change" : "), no significant change";
  }
  if (!result.warning.empty()) text += fmt::format(". Not the same work: {}", result.warning);
  return "  " + verdict + "  " + sheet.sentence(text, 8).substr(8);
}

std::string gates_section(const DiffPage& page, const Sheet& sheet) {
  if (page.gates.empty()) return "";
  std::string text = sheet.style.heading("Gates");
  for (const analyze::GateResult& result : page.gates) text += gate_line(result, sheet);
  return text;
}

// ---- what was done

std::string short_text(const std::string& text, bool full) { return full ? text : cut_off(text, 120); }

// What may matter beside the work: programs, versions, how it was recorded.
std::string setup_text(const Diff& diff, bool full) {
  constexpr std::size_t kMost = 4;
  std::string text;
  std::size_t shown = 0, more = 0;
  for (const analyze::Difference& each : diff.work.differences) {
    if (each.kind != "setup") continue;
    if (!full && shown == kMost) {
      ++more;
      continue;
    }
    const bool command = each.name == "command" && each.text.size() > 120 && !full;
    text += (shown++ == 0 ? "" : "; ") + (command ? std::string("the command") : short_text(each.text, full));
  }
  if (text.empty()) return "";
  if (more > 0) text += fmt::format("; and {} more", more);
  return "Also different: " + text + ".";
}

std::string head_section(const DiffPage& page, const Sheet& sheet) {
  const Diff& diff = page.diff;
  std::string text = sheet.sentence("before: " + diff.before, 0) + sheet.sentence("after: " + diff.after, 0) + "\n" +
                     sheet.sentence(diff.work.text, 0) + sheet.sentence(setup_text(diff, page.full), 0);
  text += "\n";
  for (const std::string_view line : base::split(diff.headline, '\n')) text += sheet.sentence(line, 0);
  return text;
}

std::string notes_section(const Diff& diff, std::size_t most, const Sheet& sheet) {
  std::string text;
  for (std::size_t i = 0; i < std::min(most, diff.warnings.size()); ++i)
    text += sheet.sentence("Note: " + diff.warnings[i] + ".");
  return text;
}

// ---- tables

bool has_pace(const Diff& diff, std::string_view stage) {
  return std::ranges::any_of(diff.rows, [&](const DiffRow& r) { return r.kind == "pace" && r.stage == stage; });
}

std::string pace_section(const Diff& diff, std::size_t most, const Sheet& sheet) {
  Changes changes("stage");
  bool per_token = false, unjudged = false;
  std::string_view stage;
  for (const DiffRow& row : diff.rows) {
    if (row.kind != "pace") continue;
    if (row.stage != stage && changes.size() >= most) break;  // a stage is shown whole or not at all
    stage = row.stage;
    const bool in_training = row.stage == analyze::kTrainingStep;
    const bool per = row.name.starts_with("time per");
    changes.add(row, (in_training ? "training " : row.stage + " ") + (per ? row.name.substr(5) : row.name));
    per_token = per_token || (row.stage == "decode" && row.name == "time per token");
    unjudged = unjudged || verdict(row) == "not judged";
  }
  if (changes.size() == 0) return "";
  const std::string text = changes.text("Throughput and latency", sheet);
  std::string note = "Times are medians";
  if (per_token) note += "; TPOT is per token of one sequence, per token is of all sequences";
  if (unjudged) note += "; not judged: too few steps to tell a change from noise, repeats would";
  return text + sheet.sentence(note + ".");
}

std::string stages_section(const Diff& diff, const Sheet& sheet) {
  Changes changes("stage");
  for (const DiffRow& row : diff.rows) {
    if (row.kind == "stage") changes.add(row, row.name);
  }
  if (changes.size() == 0) return "";
  return changes.text("Stages", sheet) +
         sheet.sentence(
             "Median time of a step; of decode, from token to token. A change is faster or slower if it is "
             "beyond chance at 5 % (corrected for the number of rows) and at least " +
             base::human_percent(diff.least) + ".");
}

std::string reason_lines(const std::vector<analyze::Reason>& reasons, std::size_t most, const Sheet& sheet) {
  std::string text;
  for (std::size_t i = 0; i < std::min(most, reasons.size()); ++i) {
    const analyze::Reason& reason = reasons[i];
    const std::string time = reason.ns == 0 ? "" : (reason.ns > 0 ? "+" : "") + base::human_ns(reason.ns) + ": ";
    text += sheet.sentence(time + reason.text, 6);
  }
  return text;
}

// A stage or a part that changed, with what it comes from.
std::string why_entry(const DiffRow& row, std::size_t reasons, const Sheet& sheet) {
  const std::string name = (row.kind == "stage" ? "" : row.stage + " › ") + row.name;
  const double change = *row.after - *row.before;
  std::string text =
      sheet.sentence(fmt::format("{}: {} per {} ({})", name, (change > 0 ? "+" : "") + base::human_ns(change * 1e9),
                                 row.per, signed_percent(row.change.ratio)));
  if (row.kind == "stage" && row.per != "step") {
    text += sheet.sentence(fmt::format("Of a step {}{}, of which:", *row.mean_change > 0 ? "+" : "",
                                       base::human_ns(*row.mean_change * 1e9)),
                           6);
  } else if (row.mean_change && std::fabs(*row.mean_change - change) > 0.2 * std::fabs(change)) {
    text += sheet.sentence(fmt::format("Mean {}{}, unlike the median. The reasons below explain the mean.",
                                       *row.mean_change > 0 ? "+" : "", base::human_ns(*row.mean_change * 1e9)),
                           6);
  }
  return text + reason_lines(row.why, reasons, sheet);
}

// Stages that changed, and the modules they changed in.
std::vector<std::string> why_entries(const Diff& diff, std::size_t top, std::size_t reasons, const Sheet& sheet) {
  std::vector<std::string> entries;
  const bool training = has_pace(diff, analyze::kTrainingStep);
  for (const DiffRow& row : diff.rows) {
    const bool whole = training && row.name == analyze::kTrainingStep;  // its stages say more
    if (row.kind == "stage" && row.significant && row.comparable && row.mean_change && !row.why.empty() && !whole)
      entries.push_back(why_entry(row, reasons, sheet));
  }
  std::size_t shown = 0;
  for (const std::size_t index : diff.causes) {
    const DiffRow& row = diff.rows[index];
    if (row.before && row.after && shown++ < top) entries.push_back(why_entry(row, reasons, sheet));
  }
  return entries;
}

std::string joined_why(const std::vector<std::string>& entries, const Sheet& sheet) {
  if (entries.empty()) return "";
  std::string text = sheet.style.heading("What changed, and why");
  for (const std::string& entry : entries) text += entry;
  const bool bytes = text.find(" per GB (") != std::string::npos,
             flops = text.find(" per TFLOP (") != std::string::npos;
  if (bytes) text += sheet.sentence("per GB: of the bytes that the model must move, where these differ.");
  if (flops) text += sheet.sentence("per TFLOP: of the model's FLOPs, where these differ.");
  return text;
}

std::string parts_section(const Diff& diff, std::string_view kind, const char* title, std::size_t top,
                          const Sheet& sheet) {
  Changes changes(kind == "shape" ? "stage, shape" : kind == "module" ? "stage, module" : "stage, operator");
  std::size_t more = 0, quiet = 0, other = 0;
  for (const DiffRow& row : diff.rows) {
    if (row.kind != kind || row.stage == "load" || row.stage == "warm-up") continue;  // other work every time
    const bool one_sided = !row.before || !row.after;
    if (!row.comparable) {
      ++other;
    } else if (!row.significant && !one_sided) {
      ++quiet;
    } else if (changes.size() < top) {
      changes.add(row, row.stage + " › " + row.name);
    } else {
      ++more;
    }
  }
  if (changes.size() == 0) return "";
  std::string rest = fmt::format("{} others without a significant change.", quiet);
  if (more > 0) rest = fmt::format("{} more that changed (--full --top {}), ", more, more + changes.size()) + rest;
  if (other > 0) rest += fmt::format(" {} did other work and are left out.", other);
  return changes.text(title, sheet) + sheet.sentence(rest);
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

std::string measures_section(const Diff& diff, const Sheet& sheet) {
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
  return changes.text("Measures", sheet) +
         sheet.sentence(
             "not judged: one number each, without a spread; repeats would tell. other work: the two did not "
             "compute the same.");
}

std::string full_text(const DiffPage& page, const Sheet& sheet) {
  const Diff& diff = page.diff;
  return head_section(page, sheet) + notes_section(diff, SIZE_MAX, sheet) + gates_section(page, sheet) +
         pace_section(diff, SIZE_MAX, sheet) + stages_section(diff, sheet) +
         joined_why(why_entries(diff, page.top, 5, sheet), sheet) +
         parts_section(diff, "module", "Modules", page.top, sheet) +
         parts_section(diff, "operator", "Operators", page.top, sheet) +
         parts_section(diff, "shape", "Matrix products", page.top, sheet) + measures_section(diff, sheet);
}

std::size_t lines_of(std::string_view text) { return static_cast<std::size_t>(std::ranges::count(text, '\n')); }

// One screen: gates and the first rows always, then reasons and rows while there is space for all of them.
std::string screen_text(const DiffPage& page, const Sheet& sheet) {
  const Diff& diff = page.diff;
  constexpr std::size_t kPaces = 5, kNotes = 3;
  std::string text = head_section(page, sheet) + notes_section(diff, kNotes, sheet) + gates_section(page, sheet) +
                     pace_section(diff, kPaces, sheet);
  const std::string last =
      "\n" +
      sheet.sentence("--full: all stages, modules, operators, matrix products and measures; --json: all of it.", 0);
  const auto fits = [&](const std::string& more) {
    return lines_of(text) + lines_of(more) + lines_of(last) <= kScreenLines;
  };
  std::vector<std::string> entries = why_entries(diff, 4, 3, sheet);
  while (!entries.empty() && !fits(joined_why(entries, sheet))) entries.pop_back();
  text += joined_why(entries, sheet);
  const bool modules = std::ranges::any_of(
      diff.rows, [](const DiffRow& row) { return row.kind == "module" && row.significant && row.comparable; });
  for (std::size_t top = std::min<std::size_t>(page.top, 8); top >= 2; --top) {
    const std::string parts = modules ? parts_section(diff, "module", "Modules", top, sheet)
                                      : parts_section(diff, "operator", "Operators", top, sheet);
    if (parts.empty() || !fits(parts)) continue;
    text += parts;
    break;
  }
  return text + last;
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
  const Sheet sheet{Style{colour}};
  if (!page.compared) return sheet.sentence(page.diff.after, 0) + gates_section(page, sheet);
  return page.full ? full_text(page, sheet) : screen_text(page, sheet);
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
  all["work"] = page.compared ? base::fields_json(diff.work) : Json(nullptr);
  for (std::size_t i = 0; i < diff.rows.size(); ++i)
    all["rows"].push_back(row_json(diff.rows[i], std::ranges::find(diff.causes, i) != diff.causes.end()));
  out.update(described("llmprof.diff", all));
}

std::string gates_junit(const DiffPage& page) {
  std::string cases;
  std::size_t failures = 0;
  for (const analyze::GateResult& result : page.gates) {
    cases += fmt::format("  <testcase classname=\"llmprof.diff\" name=\"{}\"", svg_escaped(result.gate.text));
    if (result.passed && result.warning.empty()) {
      cases += "/>\n";
      continue;
    }
    if (result.passed) {
      cases += fmt::format(">\n    <system-out>warning: {}</system-out>\n  </testcase>\n", svg_escaped(result.warning));
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
