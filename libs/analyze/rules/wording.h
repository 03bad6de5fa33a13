#pragma once
// Small words of the rules: evidence, outcomes and severities with few characters.

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "analyze/rules/rule.h"
#include "trace/run.h"

namespace llmprof::analyze {

// A number with its unit: "s", "B", "" for numbers of things.
Evidence number(std::string name, std::string what, std::optional<double> value, std::string unit, std::string source,
                std::string rows = "");
// A fraction and what it is of.
Evidence fraction(std::string name, std::string what, std::optional<double> value, std::string of, std::string source,
                  std::string rows = "");
// Nanoseconds, as seconds.
Evidence time_of(std::string name, std::string what, double ns, std::string source, std::string rows = "");

RuleResult not_found(std::string why);
RuleResult not_applicable(std::string why);
// Of the stage's time `of_stage_ns`.
void set_gain(Finding& finding, double ns, double of_stage_ns, std::string how, bool upper_bound = true);

// Bytes that the stage's steps moved by hardware counters, where they were counted.
void add_counted_bytes(const Summary& summary, std::string_view stage, std::vector<Evidence>& evidence);

const Stage* stage_named(const Summary& summary, std::string_view name);
bool is_preparation(std::string_view stage);  // load, warm-up: not what a model is run for
// Share of a stage's time with a kernel executing, over its devices; nullopt if it has no time.
std::optional<double> busy_share(const Stage& stage);
using trace::sql_literal;
// "3 kernels", "1 kernel"
std::string count_of(double count, std::string_view plural);
// "decode step", "decode steps"; "step" of a stage that has no better name than steps.
std::string step_word(std::string_view stage, std::string_view word = "step");
std::string short_kernel(std::string_view name);  // without namespaces and template arguments

// Stages whose passes end with the choice of tokens: prefill, decode, mixed, draft, verify, generation.
bool makes_tokens(std::string_view stage);
bool is_training(std::string_view stage);  // forward, backward, optimizer, training

}  // namespace llmprof::analyze
