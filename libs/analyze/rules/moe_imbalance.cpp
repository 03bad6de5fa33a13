// Experts of one layer with very different numbers of tokens.

#include "analyze/rules/tools.h"

namespace llmprof::analyze::moe_imbalance {
namespace {

constexpr double kLeastRatio = 2;     // tokens of the busiest expert, of a mean one
constexpr double kLeastShare = 0.01;  // of the stage's time
constexpr double kLeastRows = 2;      // of a mean expert: with fewer, chance alone makes the difference

Finding finding_of(const StageExperts& experts, const Stage& stage) {
  const double ratio = experts.most_rows / experts.mean_rows, gain = experts.slowest_ns - experts.balanced_ns;
  Finding out{.stage = stage.name, .part = experts.worst_layer};
  out.title = fmt::format("The busiest expert of a layer has {:.1f} times the tokens of a mean one", ratio);
  const std::string rows = fmt::format(
      "SELECT s.number, a.module, g.m, g.n, k.device_id, k.end_ns - k.begin_ns AS ns FROM kernel AS k JOIN attribution "
      "AS a ON a.kernel_id = k.id JOIN gemm AS g ON g.id = a.gemm_id JOIN step AS s ON s.id = a.step_id WHERE a.stage "
      "= {} AND contains(a.module, '.experts.') ORDER BY s.number, a.module",
      sql_literal(stage.name));
  out.add_number("expert_most_tokens", "tokens of the busiest expert, mean over layers and steps", experts.most_rows,
                 "", "counted", rows);
  out.add_number("expert_mean_tokens",
                 fmt::format("tokens of each of {} experts, mean over layers and steps", experts.experts),
                 experts.mean_rows, "", "counted", rows);
  out.add_number("expert_worst_ratio", fmt::format("busiest to mean, at worst, in {}", experts.worst_layer),
                 experts.worst_ratio, "", "counted", rows);
  out.add_time("expert_time", "kernels of the experts' products", experts.time_ns, "measured", rows);
  out.advice = {
      "Balance the router: a larger auxiliary loss, or bias terms that follow the load; at inference, spread copies of "
      "hot experts."};
  if (experts.devices < 2) {
    out.text =
        "All experts run on one device, where their times add up however the tokens are spread; with experts on "
        "several devices the busiest one would set the pace.";
    return out;
  }
  out.text = fmt::format("The experts are spread over {} devices, and each layer waits for the one with most tokens.",
                         experts.devices);
  out.advice.emplace_back("Place hot experts on different devices.");
  out.set_gain(
      gain, stage.time_ns,
      fmt::format("{} on the busiest device of each layer, {} on a mean one: {} of {}", human_ns(experts.slowest_ns),
                  human_ns(experts.balanced_ns), human_ns(gain), human_ns(stage.time_ns)));
  out.next = "llmprof diff RUN CHANGED_RUN";
  return out;
}

}  // namespace

RuleResult check(const RuleInput& run) {
  if (run.facts.experts.empty()) return not_applicable("0 matrix products in modules named experts.N");
  RuleResult out;
  for (const StageExperts& experts : run.facts.experts) {
    const Stage* stage = stage_named(run.summary, experts.stage);
    if (stage == nullptr || experts.mean_rows <= 0) continue;
    const double ratio = experts.most_rows / experts.mean_rows, gain = experts.slowest_ns - experts.balanced_ns;
    const bool costs = experts.devices < 2 || gain >= kLeastShare * stage->time_ns;
    if (ratio >= kLeastRatio && experts.mean_rows >= kLeastRows && costs) {
      out.findings.push_back(finding_of(experts, *stage));
    } else {
      out.add_why(experts.stage, fmt::format("the busiest of {} experts has {:.1f} tokens, a mean one {:.1f}",
                                             experts.experts, experts.most_rows, experts.mean_rows));
    }
  }
  return out;
}

}  // namespace llmprof::analyze::moe_imbalance
