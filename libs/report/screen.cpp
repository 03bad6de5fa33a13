// The answer on one screen. Everything here is a choice of what the rest of the report says at length.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/human.h"
#include "base/strings.h"
#include "base/text_table.h"
#include "report/diagnosis.h"
#include "report/page.h"
#include "report/sections.h"
#include "trace/loss.h"

namespace llmprof::report {
namespace {

using analyze::Finding;
using analyze::Stage;
using analyze::Verdict;
using base::Json;

constexpr std::size_t kMostFindings = 3, kStages = 6, kStagesBesideRequests = 3, kRows = 5;

std::size_t lines_in(std::string_view text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

// "NVIDIA H200"; "2 x NVIDIA H200": devices of the busiest one's kind that worked.
std::string device_words(const analyze::Summary& summary) {
  if (summary.devices.empty()) return "";
  const analyze::DeviceCard& device = summary.devices.front();
  const std::string name = device.name.empty() ? "a " + device.kind + " of unknown name" : device.name;
  if (summary.busy_devices > 1) return fmt::format("{} x {}", summary.busy_devices, name);
  return device.kind == "cpu" && device.units > 0 ? fmt::format("{}, {}", name, counted(device.units, "core")) : name;
}

// Of a program that computes no matrix products nobody asks for the model.
std::string model_words(const analyze::Summary& summary) {
  if (summary.model_family.empty()) {
    return summary.coverage.gemms == 0 || summary.model_why.empty() ? "" : "Model unknown: " + summary.model_why + ".";
  }
  std::string out = "Model: ";
  if (summary.model_family != "inferred") out += summary.model_family + ", ";
  if (summary.parameters)
    out += fmt::format("{} parameters, ", base::human_count(static_cast<double>(*summary.parameters)));
  // How it is known, without the details that `report RUN run` has.
  constexpr std::size_t kFewWords = 30;
  std::string origin = summary.model_origin.substr(0, summary.model_origin.find(';'));
  if (const std::size_t colon = origin.find(": "); colon != std::string::npos && origin.size() - colon > kFewWords)
    origin.resize(colon);
  return out + origin + ".";
}

std::string what_ran(const Page& page, const Style& style) {
  std::string command;
  for (const std::string& word : page.info.command) command += (command.empty() ? "" : " ") + word;
  std::string out = style.heading(command.empty() ? page.run : fmt::format("{}: {}", page.run, command)).substr(1);
  const std::int64_t life_ns = page.summary.life.time_ns();
  const std::int64_t wall_ns = life_ns > 0 ? life_ns : page.summary.coverage.wall_ns;
  std::string line = base::human_ns(static_cast<double>(wall_ns));
  if (wall_ns <= 0) {
    const std::int64_t served_ns = page.summary.requests.duration_ns;
    line = served_ns > 0 ? base::human_ns(static_cast<double>(served_ns)) + " of requests" : "No times";
  }
  if (is_predicted(page)) line = "Predicted, not measured: " + line;
  if (const std::string status = exit_words(page); !status.empty()) line += ", " + status;
  if (page.summary.life.process_id != 0 && !page.summary.life.ended) line += ", still running when recording ended";
  if (const std::string device = device_words(page.summary); !device.empty()) line += ", on " + device;
  if (is_imported(page)) {
    const analyze::SourceFile& source = page.summary.imported.sources.front();
    line +=
        fmt::format(", imported from {}{}", source.file, source.tool.empty() ? "" : fmt::format(" ({})", source.tool));
  }
  const std::vector<analyze::MergedFile>& merged = page.summary.imported.merged;
  for (const analyze::MergedFile& each : merged)
    line += (&each == merged.data() ? ", merged from " : &each == &merged.back() ? " and " : ", ") + each.file;
  const bool failed = page.summary.life.exit_status.value_or(0) != 0;
  const std::string stands_on = is_predicted(page) ? " " + page.info.prediction : "";
  const std::string first = wrapped(line + "." + stands_on);
  out += failed ? style.warning(first) : first;
  const std::string model = model_words(page.summary), job = job_words(page.summary, is_predicted(page));
  return out + window_line(page) + wrapped(model + (model.empty() || job.empty() ? "" : " ") + job);
}

std::string where_time_went(const Page& page, const Style& style) {
  const std::string bar = life_bar(page);
  if (bar.empty()) return "";
  return style.heading(
             fmt::format("Where its {} went", base::human_ns(static_cast<double>(page.summary.life.time_ns())))) +
         bar;
}

// "TPOT 2.04 ms": of what people ask of that stage. Where requests have latencies of their own, a step is a step.
std::string latency_of(const Stage& stage, bool requests) {
  if (requests) return stage.step_p50_ns ? "step " + time_cell(stage.step_p50_ns) : "-";
  if (stage.ttft_ns) return "TTFT " + time_cell(stage.ttft_ns);
  if (stage.tpot_p50_ns) return "TPOT " + time_cell(stage.tpot_p50_ns);
  return stage.step_p50_ns && stage.steps > 1 ? "step " + time_cell(stage.step_p50_ns) : "-";
}

std::string peak_words(const std::optional<double>& peak, const char* unit, std::string_view of,
                       std::string_view source) {
  return fmt::format("{}{} ({})", base::human_rate(*peak, unit), of, source);
}

// What the percentages are of, and what marks mean.
std::string stage_notes(const Page& page, std::size_t left_out) {
  const analyze::Summary& s = page.summary;
  std::string out = left_out == 0 ? "" : fmt::format("{} more: see stages. ", left_out);
  out += fmt::format("busy %: of the stage's time{}.", s.on_gpu ? ", with the GPU executing" : ", in BLAS calls");
  // Where the whole is not the time above.
  if (s.life.time_ns() != s.coverage.wall_ns)
    out = fmt::format("run %: of {}. {}", base::human_ns(static_cast<double>(s.coverage.wall_ns)), out);
  if (!s.devices.empty()) {
    const analyze::DeviceCard& device = s.devices.front();
    if (s.peak_flops &&
        std::ranges::any_of(s.stages, [](const Stage& stage) { return stage.efficiency.mfu.has_value(); }))
      out += " MFU: of " + peak_words(s.peak_flops, "FLOP/s", " " + device.type, device.peak_flops_source) + ".";
    if (s.peak_bandwidth &&
        std::ranges::any_of(s.stages, [](const Stage& stage) { return stage.efficiency.mbu.has_value(); }))
      out += " MBU: of " + peak_words(s.peak_bandwidth, "B/s", "", device.peak_bandwidth_source) + ".";
  }
  std::string warm_up;
  for (const Stage& stage : s.stages) {
    if (stage.warm_up_steps == 0 || stage.steady_steps == stage.steps || !shown(page, stage.name)) continue;
    warm_up +=
        fmt::format("{}{} {}", warm_up.empty() ? " Without warm-up (" : ", ", stage.name, time_cell(stage.warm_up_ns));
  }
  if (!warm_up.empty()) out += warm_up + ").";
  const auto any = [&](auto is) { return std::ranges::any_of(s.stages, is); };
  if (any([](const Stage& stage) { return !stage.declared() && !stage.guessed(); }))
    out += " *: inferred from names or shapes.";
  if (any([](const Stage& stage) { return stage.guessed(); })) out += " ?: a guess, confidence below 0.6.";
  return wrapped(out);
}

// Those with most time, in the order they have.
void keep_longest(Json& rows, std::size_t most) {
  while (rows.size() > most) {
    std::size_t least = 0;
    for (std::size_t i = 1; i < rows.size(); ++i) {
      if (rows[i]["time_ns"].get<std::int64_t>() < rows[least]["time_ns"].get<std::int64_t>()) least = i;
    }
    rows.erase(least);
  }
}

std::string stage_rows(const Page& page, const Style& style, const TableText& tables) {
  Json rows = Json::array();
  const Json& all = tables.report()["stages"];
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Stage& stage = page.summary.stages[i];
    if (!shown(page, stage.name)) continue;
    rows.push_back(all[i]);
    rows.back()["latency"] = latency_of(stage, page.summary.requests.count > 0);
  }
  if (rows.empty()) return "";
  const std::size_t all_rows = rows.size();
  keep_longest(rows, page.summary.requests.count > 0 ? kStagesBesideRequests : kStages);
  return style.heading("Stages") + tables.rows("stages[]#screen", rows, kStages) + step_rate(page) +
         stage_notes(page, all_rows - rows.size());
}

// Of a run without stages: its kernels, else its functions (of a Python program those that somebody wrote), else what
// another tool added up.
std::string first_rows(const Page& page, const Style& style, const TableText& tables) {
  for (const char* path :
       {"kernels[]#screen", "python_functions[]#screen", "top_functions[]#screen", "gemms[]#time", "totals[]",
        "reported[]#screen"}) {
    const Json& rows = value_at(tables.report(), path);
    if (rows.is_array() && !rows.empty())
      return style.heading(tables.title(path)) + tables.rows(path, rows, kRows) + tables.notes(path);
  }
  return is_imported(page) || !page.summary.host.stacks.why.empty()
             ? ""
             : "\n" + wrapped("No kernel, BLAS call or stack sample was recorded.");
}

// With its whole advice, or by its title alone: half of an advice misleads.
std::string finding_lines(const Page& page, std::size_t rank, const Finding& finding, bool advised) {
  constexpr std::size_t kIndent = 5;
  std::string gain = gain_text(page, finding);
  if (!gain.empty()) gain = " S" + gain.substr(1) + ".";
  std::string out = wrapped(finding.title + "." + gain, kIndent);
  out.replace(0, kIndent, fmt::format("  {}. ", rank));
  std::string advice;
  for (const std::string& each : finding.advice) advice += (advice.empty() ? "" : " ") + each;
  return advised ? out + wrapped(advice, kIndent) : out;
}

std::vector<const Finding*> found(const Page& page) {
  std::vector<const Finding*> out;
  for (const Finding& finding : page.summary.diagnosis.findings) {
    const bool here = page.stage.empty() || finding.stage.empty() || finding.stage == page.stage;
    if (finding.verdict == Verdict::kFound && finding.severity != analyze::Severity::kNote && here)
      out.push_back(&finding);
  }
  return out;
}

// "4 more findings, 2 inconclusive, 10 checks passed, 12 not applicable: see diagnosis."
std::string rest_of_diagnosis(const Page& page, std::size_t shown_findings) {
  const analyze::Diagnosis& diagnosis = page.summary.diagnosis;
  std::int64_t open = 0, notes = 0, passed = 0, foreign = 0;
  for (const Finding& finding : diagnosis.findings) {
    if (finding.verdict == Verdict::kInconclusive) {
      ++open;
    } else if (finding.severity == analyze::Severity::kNote) {
      ++notes;
    }
  }
  for (const analyze::RuleOutcome& rule : diagnosis.rules) {
    passed += rule.outcome == "not found" ? 1 : 0;
    foreign += rule.outcome == "not applicable" ? 1 : 0;
  }
  const auto more = static_cast<std::int64_t>(found(page).size() - shown_findings);
  std::vector<std::string> words;
  if (more > 0) words.push_back(counted(more, shown_findings > 0 ? "more finding" : "finding"));
  if (notes > 0) words.push_back(counted(notes, "note"));
  if (open > 0) words.push_back(fmt::format("{} inconclusive", open));
  if (passed > 0) words.push_back(fmt::format("{} passed", counted(passed, "check")));
  if (foreign > 0) words.push_back(fmt::format("{} not applicable", foreign));
  if (words.empty()) return "";
  return wrapped(fmt::format("{}: see diagnosis.", fmt::join(words, ", ")));
}

std::string findings_text(const Page& page, const Style& style, std::size_t most, std::size_t advised) {
  const analyze::Diagnosis& diagnosis = page.summary.diagnosis;
  if (diagnosis.rules.empty() && diagnosis.findings.empty()) return "";
  const std::vector<const Finding*> all = found(page);
  const std::size_t count = std::min(most, all.size());
  std::string out = style.heading("What holds it back") + wrapped(diagnosis.headline);
  for (std::size_t i = 0; i < count; ++i) out += finding_lines(page, i + 1, *all[i], i < advised);
  return out + rest_of_diagnosis(page, count);
}

bool is_data_loss(const analyze::Loss& loss) { return loss.severity == trace::name_of(trace::Severity::kDataLoss); }

// One line: what is missing, by name. Lost data is said before everything else, as it may change all of it.
std::string lost(const Page& page, const Style& style) {
  if (is_predicted(page)) return "";
  std::string names, incomplete;
  for (const analyze::Loss& loss : page.summary.losses) {
    std::string name = loss.name;
    std::ranges::replace(name, '_', ' ');
    if (is_data_loss(loss)) {
      names +=
          fmt::format("{}{} ({})", names.empty() ? "" : ", ", counted(loss.count, base::singular(loss.unit)), name);
    } else {
      incomplete += (incomplete.empty() ? "" : ", ") + name;
    }
  }
  if (names.empty() && incomplete.empty()) return wrapped("Lost: nothing.");
  const std::string line = fmt::format("Lost: {}.{} See losses.", names.empty() ? "nothing" : names,
                                       incomplete.empty() ? "" : fmt::format(" Incomplete: {}.", incomplete));
  return names.empty() ? wrapped(line) : style.warning(wrapped(line));
}

std::string next(const Page& page, const TableText& tables, bool brief) {
  std::vector<std::string_view> parts;
  if (!page.summary.diagnosis.rules.empty()) parts.emplace_back("diagnosis");
  if (!page.summary.losses.empty()) parts.emplace_back("losses");
  for (const ReportPart& part : report_parts()) {
    if (!part.rows.empty() && !value_at(tables.report(), part.rows).empty()) parts.push_back(part.name);
  }
  const std::string first(parts.empty() ? "run" : parts.front());
  const std::string others =
      brief || parts.size() < 2 ? "" : fmt::format(" (or {})", fmt::join(parts.begin() + 1, parts.end(), ", "));
  return wrapped(fmt::format("Next: llmprof report {} {}{}, --full, --html {}.html", page.run, first, others,
                             std::filesystem::path(page.run).stem().string()));
}

}  // namespace

std::string screen_text(const Page& page, bool colour) {
  const Style style{colour};
  const Json report = tables_json(page);
  const TableText tables(report, flags_of(page), page.top);
  const bool staged = !page.summary.stages.empty();
  const bool bad = std::ranges::any_of(page.summary.losses, is_data_loss);
  const std::string above = what_ran(page, style) + (bad ? lost(page, style) : "") +
                            requests_block(page, style, tables) + where_time_went(page, style) +
                            (staged ? stage_rows(page, style, tables) : first_rows(page, style, tables));
  const auto below = [&](bool brief) {
    return "\n" + (bad ? "" : lost(page, style)) + cost_line(page) + next(page, tables, brief);
  };
  if (page.findings > 0) return above + findings_text(page, style, page.findings, page.findings) + below(false);
  // As many findings as fit, and of these as many as fit with their advice; one without is the last resort.
  for (const std::size_t least : {1, 0}) {
    for (const bool brief : {false, true}) {
      const std::size_t lines = lines_in(above) + lines_in(below(brief));
      for (std::size_t most = kMostFindings; most > 0; --most) {
        for (std::size_t advised = most + 1; advised-- > least;) {
          const std::string findings = findings_text(page, style, most, advised);
          if (lines + lines_in(findings) <= kScreenLines) return above + findings + below(brief);
        }
      }
    }
  }
  return above + findings_text(page, style, 1, 0) + below(true);
}

}  // namespace llmprof::report
