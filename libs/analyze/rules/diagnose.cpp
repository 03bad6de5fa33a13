#include "analyze/rules/diagnose.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <tuple>

namespace llmprof::analyze {
namespace {

constexpr double kHighShare = 0.2, kMediumShare = 0.05;  // of the stage

std::string outcome_of(const RuleResult& checked) {
  if (!checked.applicable) return "not applicable";
  if (checked.findings.empty()) return "not found";
  const bool found = std::any_of(checked.findings.begin(), checked.findings.end(),
                                 [](const Finding& finding) { return finding.verdict == Verdict::kFound; });
  return found ? "found" : "inconclusive";
}

// Advice may have parts for programs that use PyTorch: "<torch> (torch.compile)</torch>". Of others they are left out;
// where nothing is known of the program, they say what they are about.
std::string for_program(std::string text, std::optional<bool> torch) {
  static constexpr std::string_view kBegin = "<torch>", kEnd = "</torch>";
  for (std::size_t at = text.find(kBegin); at != std::string::npos; at = text.find(kBegin)) {
    const std::size_t end = text.find(kEnd, at);
    std::string part = text.substr(at + kBegin.size(), end - at - kBegin.size());
    if (torch == false) part.clear();
    if (const std::size_t open = part.find('('); !torch && open != std::string::npos)
      part.insert(open + 1, "in PyTorch ");
    text.replace(at, end + kEnd.size() - at, part);
  }
  return text;
}

void suit(const std::optional<bool>& torch, Finding& finding) {
  for (std::string& advice : finding.advice) advice = for_program(std::move(advice), torch);
  std::erase(finding.advice, "");
}

bool is_for(const Rule& rule, std::string_view stage) {
  const std::string wanted = " " + std::string(rule.stages) + " ";
  return stage.empty() || rule.stages.empty() || wanted.find(fmt::format(" {} ", stage)) != std::string::npos;
}

}  // namespace

bool is_steady(std::string_view stage) {
  static constexpr std::array<std::string_view, 10> kSteady = {"prefill", "decode",  "mixed",    "draft",     "verify",
                                                               "encode",  "forward", "backward", "optimizer", "steps"};
  return std::find(kSteady.begin(), kSteady.end(), stage) != kSteady.end();
}

Severity severity_of(const Finding& finding) {
  if (!finding.gain || finding.gain->ns <= 0 || finding.gain->of_ns <= 0) return Severity::kNote;
  const double share = finding.gain->ns / finding.gain->of_ns;
  return share >= kHighShare ? Severity::kHigh : share >= kMediumShare ? Severity::kMedium : Severity::kLow;
}

void rank(std::vector<Finding>& findings) {
  const auto place = [](const Finding& finding) {
    const int group = finding.verdict == Verdict::kInconclusive ? 3
                      : !finding.gain                           ? 2
                      : is_steady(finding.stage)                ? 0
                                                                : 1;
    return std::tuple(group, finding.gain ? -finding.gain->ns : 0.0);
  };
  std::stable_sort(findings.begin(), findings.end(),
                   [&](const Finding& a, const Finding& b) { return place(a) < place(b); });
}

Diagnosis diagnose(const Summary& summary, const Facts& facts, std::span<const Rule* const> all) {
  Diagnosis out;
  for (const Rule* rule : all) {
    RuleResult checked = rule->check({summary, facts});
    std::erase_if(checked.findings, [&](const Finding& finding) { return !is_for(*rule, finding.stage); });
    out.rules.push_back({std::string(rule->name), outcome_of(checked),
                         checked.findings.empty() ? checked.why : checked.findings.front().title});
    for (Finding& finding : checked.findings) {
      finding.rule = rule->name;
      finding.severity = severity_of(finding);
      suit(facts.torch, finding);
      if (!finding.title.empty())
        finding.title[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(finding.title[0])));
      out.findings.push_back(std::move(finding));
    }
  }
  rank(out.findings);
  out.headline = headline(summary, facts, out.findings);
  return out;
}

Result<Diagnosis> diagnose(const trace::Run& run, const AnalysisContext& analysis, const Summary& summary) {
  LLMPROF_LET(Facts facts, gather_facts(run, analysis, summary));
  if (!takes_several_ranks(summary)) return diagnose(summary, facts, rules());
  Summary mean = summary;
  take_mean_rank(mean, facts);
  return diagnose(mean, facts, rules());
}

}  // namespace llmprof::analyze
