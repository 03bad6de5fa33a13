#include "report/diagnosis.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "analyze/rules/rule.h"
#include "base/human.h"
#include "base/text_table.h"
#include "report/layout.h"
#include "report/table.h"

namespace llmprof::report {
namespace {

using analyze::Evidence;
using analyze::Finding;
using analyze::Verdict;

constexpr std::size_t kIndent = 12;        // of what stands below a finding's title
constexpr std::size_t kShownEvidence = 2;  // of a finding on one screen
constexpr std::size_t kNamedRules = 4;     // of those that passed
constexpr std::size_t kMostFindings = 5;

bool shown_finding(const Page& page, const Finding& finding) {
  return page.stage.empty() || finding.stage.empty() || finding.stage == page.stage;
}

std::vector<const Finding*> shown_findings(const Page& page, Verdict verdict) {
  std::vector<const Finding*> out;
  for (const Finding& finding : page.summary.diagnosis.findings) {
    if (finding.verdict == verdict && shown_finding(page, finding)) out.push_back(&finding);
  }
  return out;
}

std::string one_line(std::string_view text, std::size_t indent) {
  return std::string(indent, ' ') + cut_off(base::printable(text), line_width() - indent) + "\n";
}

std::string coloured(const Style& style, const Finding& finding, const std::string& text) {
  if (!style.colour || finding.verdict == Verdict::kInconclusive) return text;
  static constexpr std::array<std::string_view, 4> kCodes{"31", "33", "36", "2"};  // red, yellow, cyan, dim
  return fmt::format("\x1b[{}m{}\x1b[0m", kCodes[static_cast<std::size_t>(finding.severity)], text);
}

// "1 HIGH    Title", the title on two lines at most.
std::string title_line(std::size_t rank, const Finding& finding, const Style& style) {
  std::string lines = wrapped(finding.title, kIndent);
  const std::string head = fmt::format("{:>3} {:<8}", rank, severity_word(finding));
  return coloured(style, finding, head) + lines.substr(std::min(lines.size(), kIndent));
}

// As much of the evidence as fits one line behind what is to be gained.
std::string gain_and_evidence(const Page& page, const Finding& finding) {
  std::string gain = gain_text(page, finding), proof;
  const std::size_t most = std::min(finding.evidence.size(), kShownEvidence);
  for (std::size_t i = 0; i < most; ++i) {
    const std::string next = (proof.empty() ? "" : "; ") + evidence_text(finding.evidence[i]);
    if (!proof.empty() && base::display_width(proof + next) > line_width() - kIndent) break;
    proof += next;
  }
  if (gain.empty()) return proof.empty() ? "" : one_line(proof, kIndent);
  if (proof.empty()) return one_line(gain, kIndent);
  const std::string both = gain + "; " + proof;
  if (base::display_width(base::printable(both)) <= line_width() - kIndent) return one_line(both, kIndent);
  return one_line(gain, kIndent) + one_line(proof, kIndent);
}

std::string brief(const Page& page, std::size_t rank, const Finding& finding, const Style& style) {
  std::string out = title_line(rank, finding, style) + gain_and_evidence(page, finding);
  if (!finding.advice.empty()) out += wrapped("do: " + finding.advice.front(), kIndent);
  if (!finding.next.empty()) out += wrapped("next: " + finding.next, kIndent);
  return out;
}

// One line, or two: a command that is cut off is none.
std::string brief_inconclusive(const Finding& finding) {
  return wrapped("? " + finding.title + (finding.next.empty() ? "" : ": " + finding.next));
}

// "12 checks passed: a, b, c and 9 more; 5 not applicable."
std::string silent_rules(const Page& page) {
  std::string names;
  std::size_t silent = 0, foreign = 0;
  for (const analyze::RuleOutcome& rule : page.summary.diagnosis.rules) {
    if (rule.outcome == "not applicable") ++foreign;
    if (rule.outcome != "not found" || ++silent > kNamedRules) continue;
    names += (names.empty() ? "" : ", ") + rule.rule;
  }
  if (silent + foreign == 0) return "";
  std::string out;
  if (silent > 0) {
    out = fmt::format("{} passed: {}{}", counted(static_cast<std::int64_t>(silent), "check"), names,
                      silent > kNamedRules ? fmt::format(" and {} more", silent - kNamedRules) : "");
  }
  if (foreign > 0) {
    out += out.empty() ? counted(static_cast<std::int64_t>(foreign), "check") : fmt::format("; {}", foreign);
    out += " not applicable";
  }
  return wrapped(out + ". See diagnosis; --explain NAME has one of them.");
}

// Inside double quotes of a shell.
std::string shell_quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\' || c == '$' || c == '`') out += '\\';
    out += c;
  }
  return out + "\"";
}

std::string open_findings(const Page& page) {
  constexpr std::size_t kMost = 4;
  const std::vector<const Finding*> open = shown_findings(page, Verdict::kInconclusive);
  if (open.empty()) return "";
  std::string out = wrapped("Inconclusive; to find out, run:");
  for (std::size_t i = 0; i < std::min(open.size(), kMost); ++i) out += brief_inconclusive(*open[i]);
  return open.size() > kMost ? out + wrapped(fmt::format("{} more.", open.size() - kMost), 4) : out;
}

std::string evidence_lines(const Page& page, const Evidence& evidence) {
  std::string out = wrapped("- " + evidence_text(evidence), 4);
  if (!evidence.what.empty()) out += wrapped(evidence.what, 6);
  if (!evidence.rows.empty())
    out += wrapped(fmt::format("rows: llmprof query {} {}", page.run, shell_quoted(evidence.rows)), 6);
  return out;
}

std::string rule_table(const Page& page) {
  std::string out;
  for (const analyze::RuleOutcome& rule : page.summary.diagnosis.rules) {
    out += wrapped(fmt::format("{}: {}{}{}", rule.rule, rule.outcome, rule.why.empty() ? "" : ": ", rule.why));
  }
  return out;
}

}  // namespace

std::string_view severity_word(const Finding& finding) {
  if (finding.verdict == Verdict::kInconclusive) return "open";
  static constexpr std::array<std::string_view, 4> kWords{"HIGH", "medium", "low", "note"};
  return kWords[static_cast<std::size_t>(finding.severity)];
}

std::string evidence_text(const Evidence& evidence) {
  if (!evidence.value) return fmt::format("{} unknown: {}", evidence.name, evidence.why);
  std::string out = fmt::format("{} {}", evidence.name, with_unit(*evidence.value, evidence.unit));
  if (!evidence.of.empty()) out += " of " + evidence.of;
  return evidence.source.empty() ? out : fmt::format("{} ({})", out, evidence.source);
}

std::string gain_text(const Page& page, const Finding& finding) {
  if (!finding.gain || !(finding.gain->ns > 0) || !(finding.gain->of_ns > 0)) return "";
  const double saved = finding.gain->ns, whole = finding.gain->of_ns;
  const auto stage = std::find_if(page.summary.stages.begin(), page.summary.stages.end(),
                                  [&](const analyze::Stage& each) { return each.name == finding.stage; });
  const bool stepped = stage != page.summary.stages.end() && stage->steps > 1;
  const std::string of_run =
      finding.gain->run_share
          ? fmt::format(", {} of {}", base::human_percent(*finding.gain->run_share), page.summary.diagnosis.whole)
          : "";
  const double steps = stepped ? static_cast<double>(stage->steps) : 1;
  return fmt::format("saves {}{} of {}{} ({} of {})", finding.gain->upper_bound ? "up to " : "about ",
                     base::human_ns(saved / steps), base::human_ns(whole / steps),
                     !stepped                  ? ""
                     : stage->name == "decode" ? " per token"
                                               : " per step",
                     base::human_percent(saved / whole),
                     !finding.gain->of.empty() ? finding.gain->of + of_run
                     : finding.stage.empty()   ? "the run's wall time"
                                               : finding.stage + of_run);
}

std::string diagnosis_section(const Page& page, const Style& style) {
  const analyze::Diagnosis& diagnosis = page.summary.diagnosis;
  if (diagnosis.rules.empty() && diagnosis.findings.empty()) return "";
  const std::vector<const Finding*> found = shown_findings(page, Verdict::kFound);
  const std::size_t shown = std::min(found.size(), page.findings > 0 ? page.findings : kMostFindings);
  std::string out = style.heading("Diagnosis") + wrapped(diagnosis.headline);
  for (std::size_t i = 0; i < shown; ++i) out += brief(page, i + 1, *found[i], style);
  if (shown < found.size()) {
    out += wrapped(
        fmt::format("{}: see diagnosis.", counted(static_cast<std::int64_t>(found.size() - shown), "more finding")));
  }
  return out + open_findings(page) + silent_rules(page);
}

std::string full_finding(const Page& page, const Finding& finding, const Style& style) {
  std::string where = finding.rule;
  if (!finding.stage.empty()) where += ", " + finding.stage;
  if (!finding.part.empty()) where += ", " + finding.part;
  std::string out =
      coloured(style, finding, wrapped(fmt::format("{}: {} [{}]", severity_word(finding), finding.title, where)));
  out += wrapped(finding.text, 4);
  if (const std::string gain = gain_text(page, finding); !gain.empty()) {
    out += wrapped(fmt::format("Gain: {}{}{}.", gain, finding.gain->how.empty() ? "" : ": ", finding.gain->how), 4);
  }
  if (!finding.evidence.empty()) out += "    Evidence:\n";
  for (const Evidence& evidence : finding.evidence) out += evidence_lines(page, evidence);
  if (!finding.advice.empty()) out += "    Advice:\n";
  for (const std::string& advice : finding.advice) out += wrapped("- " + advice, 4);
  if (!finding.next.empty()) out += wrapped("Next: " + finding.next, 4);
  return out;
}

std::string full_diagnosis(const Page& page, const Style& style) {
  const analyze::Diagnosis& diagnosis = page.summary.diagnosis;
  std::string out =
      style.heading("Diagnosis") + wrapped(diagnosis.headline.empty() ? "No rule was applied." : diagnosis.headline);
  for (const Verdict verdict : {Verdict::kFound, Verdict::kInconclusive}) {
    for (const Finding* finding : shown_findings(page, verdict)) out += "\n" + full_finding(page, *finding, style);
  }
  return diagnosis.rules.empty() ? out : out + style.heading("Checks") + rule_table(page);
}

base::Json diagnosis_json(const analyze::Diagnosis& diagnosis, const std::string& stage) {
  base::Json all = base::fields_json(diagnosis);
  std::erase_if(all["findings"].get_ref<base::Json::array_t&>(), [&](const base::Json& finding) {
    return !stage.empty() && !finding["stage"].is_null() && finding["stage"] != stage;
  });
  for (base::Json& rule : all["rules"]) {
    const analyze::Rule* known = analyze::find_rule(rule["rule"].get<std::string>());
    rule["title"] = known == nullptr ? rule["rule"] : base::Json(known->title);
  }
  return described("diagnosis", all);
}

}  // namespace llmprof::report
