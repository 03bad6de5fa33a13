// What logits and the choice of the next token cost.

#include <fmt/ranges.h>

#include "analyze/rules/tools.h"

namespace llmprof::analyze::logits_sampling {
namespace {

constexpr double kLeastShare = 0.01;  // of the stage's time, to gain
constexpr double kLeastBusy = 0.5;    // below it the host sets the pace, not these kernels
constexpr double kFewer = 0.5;        // rows that are needed, of those that were made

std::string rows_of(const std::string& stage) {
  return fmt::format(
      "SELECT name, op, sum(executions) AS executions, sum(time_ns) AS ns FROM work WHERE stage = {} AND in_step GROUP "
      "BY ALL ORDER BY ns DESC",
      sql_literal(stage));
}

void add_evidence(Finding& out, const StageLogits& logits, const Stage& stage) {
  const std::string rows = rows_of(stage.name);
  out.add_time("lm_head_per_step", "kernels of the product that makes the logits, per step",
               logits.head_ns / logits.steps, "measured", rows);
  out.add_time("after_logits_per_step", "kernels behind it in the step, per step", logits.after_ns / logits.steps,
               "measured", rows);
  out.add_fraction("logits_share", "both, of the kernels of the stage",
                   (logits.head_ns + logits.after_ns) / logits.kernels_ns,
                   human_ns(logits.kernels_ns) + " of kernels in the stage", "measured", rows);
  if (logits.rows_per_step > 0)
    out.add_number("logit_rows_per_step", "rows of logits made, per step", logits.rows_per_step, "", "counted",
                   fmt::format("SELECT DISTINCT g.m, g.n, g.k FROM work AS w JOIN gemm AS g ON g.id = w.gemm_id WHERE "
                               "w.stage = {} AND w.op LIKE '%lm_head'",
                               sql_literal(stage.name)));
}

// Logits of every position although one per sequence is read.
std::optional<Finding> all_positions(const StageLogits& logits, const Stage& stage, double of_stage) {
  if (logits.batch <= 0 || logits.rows_per_step <= 0 || logits.batch > kFewer * logits.rows_per_step)
    return std::nullopt;
  if (stage.name != "prefill") return std::nullopt;  // in training every position is needed; mixed steps hold several
  const double needed = logits.batch / logits.rows_per_step;
  const double gain = (logits.head_ns + logits.after_ns) * (1 - needed);
  if (gain < kLeastShare * of_stage) return std::nullopt;
  Finding out{.stage = stage.name, .part = "lm_head"};
  out.title =
      fmt::format("Prefill makes logits for {:.0f} positions, {:.0f} are needed", logits.rows_per_step, logits.batch);
  out.text = "Only the last position of each sequence decides the next token; the others are computed and thrown away.";
  add_evidence(out, logits, stage);
  out.set_gain(gain, of_stage,
               fmt::format("{} for {:.0f} rows a step; {:.0f} of them are needed: {} of {}",
                           human_ns(logits.head_ns + logits.after_ns), logits.rows_per_step, logits.batch,
                           human_ns(gain), human_ns(of_stage)));
  out.lever = "logits of the last positions only";
  out.advice = {"Take the last position of each sequence before lm_head (logits_to_keep=1, hidden[:, -1:])."};
  out.next = "llmprof diff RUN CHANGED_RUN";
  return out;
}

// The kernels behind the logits, against one pass over them.
std::optional<Finding> sampling(const Summary& summary, const StageLogits& logits, const Stage& stage,
                                double of_stage) {
  if (logits.rows_per_step <= 0 || !summary.peak_bandwidth) return std::nullopt;
  double bytes = 0;
  for (const GemmShape& gemm : summary.gemms) {
    if (gemm.stage != stage.name || !base::contains(gemm.ops, "lm_head")) continue;
    const double width = base::contains(gemm.type, "32") ? 4 : 2;
    bytes = std::max(bytes, width * static_cast<double>(std::max(gemm.m, gemm.n)) * logits.rows_per_step);
  }
  if (bytes <= 0) return std::nullopt;
  const double pass = std::max(bytes / *summary.peak_bandwidth * 1e9, logits.shortest_ns);
  const double gain = logits.after_ns - pass * logits.steps;
  if (gain < kLeastShare * of_stage) return std::nullopt;
  Finding out{.stage = stage.name, .part = "sampling"};
  out.title = fmt::format("Sampling takes {} of a {} step; one kernel over the logits would take {}",
                          human_ns(logits.after_ns / logits.steps), stage.name, human_ns(pass));
  out.text = fmt::format("{} behind lm_head in each step: {}.",
                         count_of(logits.after_kernels / logits.steps, "kernels"), fmt::join(logits.names, ", "));
  add_evidence(out, logits, stage);
  out.add_number("logit_bytes_per_step", "logits of a step", bytes, "B", "analytic");
  out.set_gain(gain, of_stage,
               fmt::format("{} behind lm_head, less {} a step for one kernel (one pass over {} of logits at {} or, if "
                           "that is longer, the shortest kernel of the stage, {}): {} of {}",
                           human_ns(logits.after_ns), human_ns(pass), human_bytes(bytes),
                           human_rate(*summary.peak_bandwidth, "B/s"), human_ns(logits.shortest_ns), human_ns(gain),
                           human_ns(of_stage)));
  out.lever = "a faster kernel for sampling";
  out.advice = {"Split the vocabulary over many blocks: a reduction by one block per sequence leaves the GPU idle."};
  if (logits.after_kernels > 2 * logits.steps)
    out.advice.emplace_back(
        "Choose tokens with one fused kernel: temperature, top-k, top-p and the draw in one pass over the logits.");
  out.next = "llmprof diff RUN CHANGED_RUN";
  return out;
}

}  // namespace

RuleResult check(const RuleInput& run) {
  RuleResult out;
  if (run.facts.logits.empty())
    return not_applicable(
        "0 steps have a matrix product of an operator lm_head: record with --modules, or say the model");
  for (const StageLogits& logits : run.facts.logits) {
    const Stage* stage = stage_named(run.summary, logits.stage);
    if (stage == nullptr || stage->time_ns <= 0 || !makes_tokens(stage->name)) continue;
    const double share = (logits.head_ns + logits.after_ns) / logits.kernels_ns;
    out.add_why(stage->name, fmt::format("lm_head takes {} and what follows it {} a step, {} of its kernels",
                                         human_ns(logits.head_ns / logits.steps),
                                         human_ns(logits.after_ns / logits.steps), human_percent(share)));
    if (busy_share(*stage).value_or(0) < kLeastBusy) {
      out.why += fmt::format(" (the GPU is busy for {} of the stage, so they do not set its pace)",
                             human_percent(busy_share(*stage)));
      continue;
    }
    const double of_stage = stage->at_pace_ns();
    if (auto found = all_positions(logits, *stage, of_stage))
      out.findings.push_back(std::move(*found));
    else if (auto after = sampling(run.summary, logits, *stage, of_stage))
      out.findings.push_back(std::move(*after));
  }
  if (out.why.empty())
    return not_applicable("no stage that chooses tokens has a matrix product of an operator lm_head");
  return out;
}

}  // namespace llmprof::analyze::logits_sampling
