#pragma once
// All rules over one run, their findings ranked by the time they would save.
//
// Gains of different findings overlap (narrower weights and a larger batch both save the same bytes), so nobody may add
// them up.

#include "analyze/context.h"
#include "analyze/rules/finding.h"
#include "analyze/rules/rule.h"
#include "analyze/summary.h"
#include "trace/run.h"

namespace llmprof::analyze {

// Stages that repeat while a model is used; the others (load, warm-up) happen once, and count less the longer it runs.
bool is_steady(std::string_view stage);

// Of a finding, by its gain: see Severity.
Severity severity_of(const Finding& finding);

// Found ones with a gain, those of stages that repeat first, most time saved first; then notes, then inconclusive ones.
void rank(std::vector<Finding>& findings);

// One sentence: the stage that dominates, what bounds it, and what would save most of it.
std::string headline(const Summary& summary, const Facts& facts, const std::vector<Finding>& ranked);

Diagnosis diagnose(const Summary& summary, const Facts& facts, std::span<const Rule* const> rules);

// Of a job whose ranks work at the same time, to what a mean one of them is and does (mean_rank.cpp).
bool takes_several_ranks(const Summary& summary);
void take_mean_rank(Summary& summary, Facts& facts);

// `summary` is that of `run`.
Result<Diagnosis> diagnose(const trace::Run& run, const AnalysisContext& analysis, const Summary& summary);

}  // namespace llmprof::analyze
