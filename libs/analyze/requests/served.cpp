// The steps of an engine as they are asked about, and the engine's own settings.

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "analyze/questions.h"
#include "analyze/requests/answers.h"
#include "base/strings.h"
#include "base/text_table.h"

namespace llmprof::analyze {
namespace {

// Steps of a process that overlap (a host that runs ahead) follow each other here.
std::vector<ServedStep> steps_of(const trace::Columns& rows) {
  std::vector<ServedStep> steps(rows.rows());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto value = [&](std::size_t column) { return rows.values[column][i]; };
    ServedStep& step = steps[i];
    step = {.id = value(0),
            .process_id = value(1),
            .begin_ns = value(2),
            .end_ns = value(3),
            .tokens = value(5),
            .prompt_tokens = value(6),
            .members = value(7),
            .padding = value(8),
            .pairs = value(9),
            .warm_up = value(4) != 0};
    if (step.tokens == trace::Columns::kNull) step.tokens = 0;
    if (step.pairs == trace::Columns::kNull) step.pairs = 0;
    if (i > 0 && steps[i - 1].process_id == step.process_id)
      step.begin_ns = std::max(step.begin_ns, steps[i - 1].end_ns);
    step.end_ns = std::max(step.end_ns, step.begin_ns);
  }
  return steps;
}

// Blocks are marked inside the step, preemptions for it before.
void add_marks(const trace::Columns& marks, std::vector<ServedStep>& steps) {
  std::size_t at = 0;
  for (std::size_t i = 0; i < marks.rows(); ++i) {
    const std::int64_t process = marks.values[0][i], ts_ns = marks.values[1][i];
    while (at < steps.size() &&
           (steps[at].process_id < process || (steps[at].process_id == process && steps[at].end_ns < ts_ns)))
      ++at;
    if (at == steps.size()) return;
    ServedStep& step = steps[at];
    if (step.process_id != process) continue;
    if (marks.values[2][i] == 0) {
      step.preempted = true;
    } else if (marks.values[4][i] > 0) {
      step.blocks_used = marks.values[3][i], step.blocks = marks.values[4][i];
    }
  }
}

}  // namespace

Result<serving::EngineRules> parse_engine(const std::string& text, const serving::EngineDevice& device) {
  serving::EngineRules rules;
  bool named = false;
  for (const std::string_view part : base::split(text, ' ')) {
    const std::string_view word = base::trimmed(part);
    if (word.empty()) continue;
    if (named) {
      LLMPROF_TRY(serving::set_rule(rules, word));
      continue;
    }
    LLMPROF_LET(rules, serving::engine_rules(word, device));
    named = true;
  }
  if (!named) return Error{ErrorCode::kUsage, "no engine is named", "for example 'vllm@0.19 max_num_seqs=64'"};
  return rules;
}

Result<Served> read_served(const trace::Run& run, const std::string& engine, const serving::EngineDevice& device) {
  Served out;
  LLMPROF_LET(const trace::Columns steps, ask_columns(run, "requests_steps"));
  if (steps.rows() == 0) {
    out.rules_why = "no step says which requests it worked for";
    return out;
  }
  out.steps = steps_of(steps);
  LLMPROF_LET(const trace::Columns marks, ask_columns(run, "requests_engine_marks"));
  add_marks(marks, out.steps);
  LLMPROF_LET(const trace::Columns prompts, ask_columns(run, "requests_prompts"));
  for (std::size_t i = 0; i < prompts.rows(); ++i)
    out.prompts.push_back({prompts.values[0][i], prompts.values[1][i], prompts.values[2][i], prompts.values[3][i]});
  std::string text = engine;
  if (text.empty()) {
    LLMPROF_LET(const trace::ResultTable note, ask(run, "requests_engine"));
    if (!note.rows.empty()) text = note.rows[0][0].text;
  }
  if (text.empty()) {
    out.rules_why =
        "the engine did not say its settings (llmprof_note \"engine\"; report --engine 'vllm@0.19 max_num_seqs=64')";
    return out;
  }
  Result<serving::EngineRules> rules = parse_engine(text, device);
  if (!rules && !engine.empty()) return rules.error();  // the user's own words
  if (rules) {
    out.rules = std::move(*rules);
    if (out.rules->num_gpu_blocks == 0 && out.steps.back().blocks > 0)
      LLMPROF_TRY(serving::set_rule(*out.rules, fmt::format("num_gpu_blocks={}", out.steps.back().blocks + 1)));
  } else {
    out.rules_why = fmt::format("{}: {}", base::printable(text).substr(0, 80), rules.error().message);
  }
  return out;
}

}  // namespace llmprof::analyze
