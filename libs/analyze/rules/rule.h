#pragma once
// One thing that may hold a model back: when it does, what it costs, what to do. One file per rule, its section in
// rules.md, its name in rule.cpp, a run that triggers it and one that must not. Rules are pure: they see the summary of
// a run and facts gathered for them, and ask nothing else.

#include <span>
#include <string_view>
#include <vector>

#include "analyze/context.h"
#include "analyze/rules/facts.h"
#include "analyze/rules/finding.h"
#include "analyze/summary.h"
#include "trace/run.h"

namespace llmprof::analyze {

struct RuleInput {
  const Summary& summary;
  const Facts& facts;
};

// Findings (several: one per stage or part), or, when there are none, why there are none.
struct RuleResult {
  std::vector<Finding> findings;
  bool applicable = true;  // false: the run has nothing that the rule is about
  std::string why;         // only read without findings

  // What was looked at in a stage, where that is no finding.
  void add_why(std::string_view stage, std::string_view text);
};

struct Rule {                // a section of rules.md
  std::string_view name;     // "wide_weights": never changes
  std::string_view title;    // "Weights in a wider type than needed"
  std::string_view meaning;  // what it looks for, the condition and how the gain is computed: `report --explain NAME`
  RuleResult (*check)(const RuleInput&) = nullptr;
  std::string_view stages = "";  // that it is about, with a blank between them; "" any. Others get no finding of it
};

std::span<const Rule* const> rules();
const Rule* find_rule(std::string_view name);

// All rules over one run, their findings ranked by the time they would save.
//
// Gains of different findings overlap (narrower weights and a larger batch both save the same bytes), so nobody may add
// them up.

// Stages that repeat while a model is used; the others (load, warm-up) happen once, and count less the longer it runs.
bool is_steady(std::string_view stage);

// Of a finding, by its gain: see Severity.
Severity severity_of(const Finding& finding);

// Found ones with a gain, most time of the run saved first; then those of stages that are only guessed, then notes,
// then inconclusive ones.
void rank(std::vector<Finding>& findings);

// One sentence: the stage that dominates, what bounds it, and what would save most of it.
std::string headline(const Summary& summary, const Facts& facts, const std::vector<Finding>& ranked);

Diagnosis diagnose(const Summary& summary, const Facts& facts, std::span<const Rule* const> rules);

// Of a job whose ranks work at the same time, to what a mean one of them is and does.
bool takes_several_ranks(const Summary& summary);
void take_mean_rank(Summary& summary, Facts& facts);

// `summary` is that of `run`.
Result<Diagnosis> diagnose(const trace::Run& run, const AnalysisContext& analysis, const Summary& summary);

}  // namespace llmprof::analyze
