// Element-wise kernels that follow each other and could be one.

#include "analyze/rules/tools.h"

namespace llmprof::analyze::unfused_chains {
namespace {

constexpr double kLeastShare = 0.02;  // of the stage's time

std::string place(const ChainGroup& group) {
  if (group.after.empty() && group.before.empty()) return "alone in the step";
  if (group.after.empty()) return "before " + group.before;
  if (group.before.empty()) return "after " + group.after;
  return fmt::format("between {} and {}", group.after, group.before);
}

std::vector<std::string> advice(const StageChains& stage, bool graphs) {
  std::vector<std::string> out;
  out.push_back(fmt::format("Fuse each such chain into one kernel<torch> (torch.compile{})</torch>.",
                            graphs ? "" : ", mode=\"reduce-overhead\" to capture graphs too"));
  bool rope = false, swiglu = false, norm = false;
  for (const ChainGroup& group : stage.groups) {
    rope = rope || (group.before == "attention" && base::contains(group.after, "_proj"));
    swiglu = swiglu || (base::contains(group.after, "gate") || base::contains(group.after, "up_proj")) ||
             base::contains(group.before, "down_proj");
    norm = norm || base::contains(group.before, "q_proj") || base::contains(group.before, "gate_proj");
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
  Finding out{.stage = stage.name};
  out.title = fmt::format("{} element-wise kernels of each {} could be {}", std::round(sum.kernels / steps),
                          step_word(stage.name), std::round(sum.chains / steps));
  const ChainGroup& top = chains.groups.front();
  out.text = fmt::format(
      "They run one after the other, each reading what the one before wrote. Most is to gain {}: {} in {} a step.",
      place(top), count_of(top.kernels / steps, "kernels"), count_of(top.chains / steps, "chains"));
  out.part = place(top);
  const std::string source = chains.estimated ? "inferred" : "measured";
  const std::string rows = rows_of(stage.name);
  out.add_number("chain_kernels_per_step", "element-wise kernels in chains, per step", sum.kernels / steps, "", source,
                 rows);
  out.add_number("chains_per_step", "chains of two or more, per step", sum.chains / steps, "", source, rows);
  out.add_time("chain_time_per_step", "kernels of the chains, per step", sum.time_ns / steps, source, rows);
  out.add_time("chain_longest_per_step", "the longest kernel of each chain, per step", sum.longest_ns / steps, source,
               rows);
  out.add_time("chain_idle_per_step", "between the kernels of a chain, per step", sum.idle_ns / steps, source);
  out.set_gain(
      std::min(sum.gain_ns(), of_stage), of_stage,
      fmt::format(
          "{} of chains and {} between their kernels, less {} that the longest of each would still take: {} of {}{}",
          human_ns(sum.time_ns), human_ns(sum.idle_ns), human_ns(sum.longest_ns), human_ns(sum.gain_ns()),
          human_ns(of_stage),
          static_cast<double>(chains.steps_read) < steps
              ? fmt::format("; from {} of {} steps", chains.steps_read, std::round(steps))
              : ""));
  out.lever = "fusing element-wise kernels";
  out.advice = advice(chains, stage.graph_launches > 0);
  out.next = "llmprof diff RUN COMPILED_RUN";
  return out;
}

}  // namespace

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
      nothing +=
          fmt::format("{}{}: {} of {} kernels a step are in chains, {} of its time to gain",
                      nothing.empty() ? "" : "; ", chains.stage, std::round(sum.kernels / chains.steps),
                      std::round(chains.kernels / chains.steps), human_percent(sum.gain_ns() / stage->at_pace_ns()));
    }
  }
  if (run.facts.chains.empty()) return not_applicable("0 kernels of a GPU in steps of the model");
  out.why = nothing;
  return out;
}

}  // namespace llmprof::analyze::unfused_chains
