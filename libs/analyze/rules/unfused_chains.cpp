// Element-wise kernels that follow each other and could be one.

#include <fmt/format.h>

#include <algorithm>

#include "analyze/rules/wording.h"
#include "base/human.h"

namespace llmprof::analyze {
namespace unfused_chains {
namespace {

constexpr double kLeastShare = 0.02;  // of the stage's time

std::string place(const ChainGroup& group) {
  if (group.after.empty() && group.before.empty()) return "alone in the step";
  if (group.after.empty()) return "before " + group.before;
  if (group.before.empty()) return "after " + group.after;
  return fmt::format("between {} and {}", group.after, group.before);
}

bool holds(std::string_view text, std::string_view word) { return text.find(word) != text.npos; }

std::vector<std::string> advice(const StageChains& stage, bool graphs) {
  std::vector<std::string> out;
  out.push_back(fmt::format("Fuse each such chain into one kernel<torch> (torch.compile{})</torch>.",
                            graphs ? "" : ", mode=\"reduce-overhead\" to capture graphs too"));
  bool rope = false, swiglu = false, norm = false;
  for (const ChainGroup& group : stage.groups) {
    rope = rope || (group.before == "attention" && holds(group.after, "_proj"));
    swiglu =
        swiglu || (holds(group.after, "gate") || holds(group.after, "up_proj")) || holds(group.before, "down_proj");
    norm = norm || holds(group.before, "q_proj") || holds(group.before, "gate_proj");
  }
  if (rope && makes_tokens(stage.stage))
    out.emplace_back(
        "Between the projections and attention: one kernel for the rotation and the write into the KV cache.");
  if (norm) out.emplace_back("Before the projections: one kernel for the residual sum and RMSNorm.");
  if (swiglu)
    out.emplace_back("In the MLP: gate and up as one product, and one kernel for SiLU and the product (SwiGLU).");
  return out;
}

std::string rows_of(const std::string& stage) {
  return fmt::format(
      "SELECT name, op, sum(executions) AS executions, sum(time_ns) AS ns FROM work WHERE stage = {} AND in_step AND "
      "gemm_id IS NULL GROUP BY ALL ORDER BY ns DESC",
      sql_literal(stage));
}

Finding finding_of(const StageChains& chains, const Stage& stage, const ChainGroup& sum) {
  const double steps = chains.steps, of_stage = stage.at_pace_ns();
  Finding out{.rule = "unfused_chains", .stage = stage.name};
  out.title = fmt::format("{} element-wise kernels of each {} could be {}, which would save {} of its {}",
                          std::round(sum.kernels / steps), step_word(stage.name), std::round(sum.chains / steps),
                          base::human_ns(sum.gain_ns() / steps), base::human_ns(of_stage / steps));
  const ChainGroup& top = chains.groups.front();
  out.text = fmt::format(
      "They run one after the other, each reading what the one before wrote. Most is to gain {}: {} in {} a step.",
      place(top), count_of(top.kernels / steps, "kernels"), count_of(top.chains / steps, "chains"));
  out.part = place(top);
  const std::string source = chains.estimated ? "inferred" : "measured";
  const std::string rows = rows_of(stage.name);
  out.evidence.push_back(number(stage.name + ".chain_kernels_per_step", "element-wise kernels in chains, per step",
                                sum.kernels / steps, "", source, rows));
  out.evidence.push_back(
      number(stage.name + ".chains_per_step", "chains of two or more, per step", sum.chains / steps, "", source, rows));
  out.evidence.push_back(time_of(stage.name + ".chain_time_per_step", "kernels of the chains, per step",
                                 sum.time_ns / steps, source, rows));
  out.evidence.push_back(time_of(stage.name + ".chain_longest_per_step", "the longest kernel of each chain, per step",
                                 sum.longest_ns / steps, source, rows));
  out.evidence.push_back(time_of(stage.name + ".chain_idle_per_step", "between the kernels of a chain, per step",
                                 sum.idle_ns / steps, source));
  set_gain(out, std::min(sum.gain_ns(), of_stage), of_stage,
           fmt::format("{} of chains and {} between their kernels, less {} that the longest of each would still take: "
                       "{} of {}{}",
                       base::human_ns(sum.time_ns), base::human_ns(sum.idle_ns), base::human_ns(sum.longest_ns),
                       base::human_ns(sum.gain_ns()), base::human_ns(of_stage),
                       static_cast<double>(chains.steps_read) < steps
                           ? fmt::format("; from {} of {} steps", chains.steps_read, std::round(steps))
                           : ""));
  out.lever = "fusing element-wise kernels";
  out.advice = advice(chains, stage.graph_launches > 0);
  out.next = "llmprof diff RUN COMPILED_RUN";
  return out;
}

RuleResult check(const RuleInput& run) {
  RuleResult out;
  std::string nothing;
  for (const StageChains& chains : run.facts.chains) {
    const Stage* stage = stage_named(run.summary, chains.stage);
    if (stage == nullptr || stage->time_ns <= 0) continue;
    const ChainGroup sum = chains.total();
    if (sum.gain_ns() >= kLeastShare * stage->at_pace_ns()) {
      out.findings.push_back(finding_of(chains, *stage, sum));
    } else {
      nothing += fmt::format("{}{}: {} of {} kernels a step are in chains, {} of its time to gain",
                             nothing.empty() ? "" : "; ", chains.stage, std::round(sum.kernels / chains.steps),
                             std::round(chains.kernels / chains.steps),
                             base::human_percent(sum.gain_ns() / stage->at_pace_ns()));
    }
  }
  if (run.facts.chains.empty()) return not_applicable("0 kernels of a GPU in steps of the model");
  out.why = nothing;
  return out;
}

}  // namespace
}  // namespace unfused_chains

extern const Rule kUnfusedChains;
const Rule kUnfusedChains = {
    .name = "unfused_chains",
    .title = "Element-wise kernels that could be one",
    .meaning =
        "Looks for two or more element-wise kernels (also copies, indexing, concatenation, norms, plain reductions) "
        "that "
        "follow each other on a stream within a step, at most 100 us apart, nodes of CUDA graphs included; of up to "
        "128 "
        "steps of each stage. Found where at least 2 % of the stage's time is to gain. Gain, at most: durations of the "
        "kernels and the pauses between them, less the longest kernel of each chain, which stands for the one pass "
        "over "
        "the data that a fused kernel still makes.",
    .check = unfused_chains::check};

}  // namespace llmprof::analyze
