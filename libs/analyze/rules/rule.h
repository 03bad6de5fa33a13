#pragma once
// One thing that may hold a model back: when it does, what it costs, what to do. One file per rule, one line in
// registry.cpp, a run that triggers it and one that must not. Rules are pure: they see the summary of a run and facts
// gathered for them, and ask nothing else.

#include <span>
#include <string_view>
#include <vector>

#include "analyze/rules/facts.h"
#include "analyze/rules/finding.h"
#include "analyze/summary.h"

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
};

struct Rule {
  std::string_view name;     // "wide_weights": never changes
  std::string_view title;    // "Weights in a wider type than needed"
  std::string_view meaning;  // what it looks for, the condition and how the gain is computed: `report --explain NAME`
  RuleResult (*check)(const RuleInput&) = nullptr;
  std::string_view stages = "";  // that it is about, with a blank between them; "" any. Others get no finding of it
};

std::span<const Rule* const> rules();
const Rule* find_rule(std::string_view name);

}  // namespace llmprof::analyze
