// Decode with few sequences: every weight is read for a handful of tokens.

#include "analyze/rules/tools.h"

namespace llmprof::analyze::small_batch {
namespace {

struct Throughput {
  double batch = 0, tokens_per_s = 0;
};

// The weights are read once per step whatever the batch; cache, activations and FLOPs grow with it. What the device
// does beyond its floor, and its idle time, stay per step as they are.
Throughput at_batch(const RuleInput& run, const StageView& view, const OperatorBytes& all, double batch,
                    double wanted) {
  const double grown = wanted / batch;
  const double per_step = view.total_ns / view.steps;
  const double bandwidth = *run.summary.peak_bandwidth, flops = *run.summary.peak_flops;
  const auto floor = [&](double factor) {
    const double bytes = (all.weight_bytes + factor * (all.kv_bytes + all.activation_bytes)) / view.steps;
    return std::max(bytes / bandwidth, factor * all.flops / view.steps / flops) * 1e9;
  };
  const double step_ns = per_step - floor(1) + floor(grown);
  return {wanted, wanted / step_ns * 1e9};
}

Finding finding_of(const RuleInput& run, const StageView& view, const StageBytes& costs, double ridge_batch) {
  const OperatorBytes all = costs.all();
  const std::string& stage = view.stage->name;
  const double now = costs.batch * view.steps / view.total_ns * 1e9;
  // The ridge is more than four times the batch here. Beyond it a larger batch hardly pays: no more is proposed.
  const double ridge_sequences = std::round(ridge_batch);
  const double wanted = std::min(std::max(2 * costs.batch, 32.0), ridge_sequences);
  const Throughput more = at_batch(run, view, all, costs.batch, wanted);
  const Throughput ridge = at_batch(run, view, all, costs.batch, ridge_sequences);
  Finding out{.stage = stage};
  out.title = fmt::format("{} runs {} at once, far below the {:.0f} at which it would be compute bound", stage,
                          count_of(costs.batch, "sequences"), ridge_batch);
  out.text = fmt::format(
      "A step reads all weights for {}; with {:.0f} sequences it would make up to {:.0f} tokens/s instead of {:.0f}. "
      "That is throughput: a single sequence gets no faster, so it saves no time of this run.",
      count_of(costs.batch, "tokens"), more.batch, more.tokens_per_s, now);
  out.lever = "a larger batch";
  out.add_number("batch", "sequences per step, mean", costs.batch, "", "measured",
                 fmt::format("SELECT id, batch, context FROM step WHERE stage = {}", sql_literal(stage)));
  out.add_number("tokens_per_s", "now", now, "1/s", "measured");
  if (more.batch < ridge.batch) {
    out.add_number(stage + fmt::format(".tokens_per_s_at_{:.0f}", more.batch),
                   fmt::format("with {:.0f} sequences: the step's floor grows, the rest stays", more.batch),
                   more.tokens_per_s, "1/s", "analytic");
  }
  out.add_number("ridge_batch", "sequences at which arithmetic takes as long as the weights' bytes", ridge_batch, "",
                 "analytic");
  out.add_number("tokens_per_s_at_ridge", "with that many: the step's floor grows, the rest stays", ridge.tokens_per_s,
                 "1/s", "analytic");
  out.advice = {"Serve more sequences at once (continuous batching): the weights are read for all of them together.",
                "For one sequence: speculative decoding checks several tokens with one reading of the weights."};
  out.next = fmt::format("llmprof record -o batch -- PROGRAM with {:.0f} sequences", more.batch);
  return out;
}

}  // namespace

RuleResult check(const RuleInput& run) {
  if (!run.facts.model.known || !run.summary.peak_bandwidth || !run.summary.peak_flops)
    return not_applicable("the model, or a peak of the device, is unknown");
  RuleResult out;
  bool any = false;
  for (const StageView& view : steady_stages(run.summary)) {
    const StageBytes* costs = find_by(run.facts.bytes, view.stage->name, &StageBytes::stage);
    if (view.stage->name != "decode" || costs == nullptr || costs->batch <= 0) continue;
    const OperatorBytes all = costs->all();
    if (all.weight_bytes <= 0 || all.flops <= 0) continue;
    any = true;
    // FLOPs of one sequence / peak = weights / bandwidth, solved for the batch.
    const double ridge_batch =
        all.weight_bytes / *run.summary.peak_bandwidth / (all.flops / costs->batch / *run.summary.peak_flops);
    if (costs->batch < 0.25 * ridge_batch && view.stage->efficiency.bound == "memory") {
      out.findings.push_back(finding_of(run, view, *costs, ridge_batch));
    } else {
      out.why = fmt::format("decode runs {} at once; weights and arithmetic balance at {:.0f}",
                            count_of(costs->batch, "sequences"), ridge_batch);
    }
  }
  if (!any) return not_applicable("no decode steps with a known batch");
  return out;
}

}  // namespace llmprof::analyze::small_batch
