#include "analyze/model_passes.h"

#include <tuple>

namespace llmprof::analyze {

bool has_formula(std::string_view stage) {
  return stage == "prefill" || stage == "decode" || stage == "mixed" || stage == "forward";
}

std::optional<model::Pass> pass_of(const StepSize& size, std::string_view stage) {
  if (!has_formula(stage) || !size.batch || !size.tokens) return std::nullopt;
  if (!size.context && stage == "decode") return std::nullopt;  // its length is not its one new token
  model::Pass pass{.batch = *size.batch, .tokens = *size.tokens, .context = size.context.value_or(*size.tokens)};
  pass.sampled = stage == "forward" ? pass.tokens : 1;  // a training step wants the logits of every position
  return pass;
}

ModelPasses model_passes(const std::vector<Step>& steps, const model::Config& config, std::int64_t on_chip_bytes,
                         trace::Strings& strings) {
  ModelPasses out;
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>, std::int64_t> known;
  for (const Step& step : steps) {
    const std::optional<model::Pass> pass = pass_of(step.size, strings.text(step.stage));
    out.pass_of_step.emplace_back();
    if (!pass) continue;
    const auto next = static_cast<std::int64_t>(known.size() + 1);
    const auto [entry, fresh] = known.try_emplace({pass->batch, pass->tokens, pass->context, pass->sampled}, next);
    out.pass_of_step.back() = entry->second;
    if (!fresh) continue;
    for (const model::OpCost& cost : model::analyze(config, *pass, on_chip_bytes)) {
      out.rows.push_back({.pass_id = next,
                          .batch = pass->batch,
                          .tokens = pass->tokens,
                          .context = pass->context,
                          .module = strings.intern(cost.module),
                          .op = strings.intern(cost.op),
                          .flops = cost.flops,
                          .weight_bytes = cost.weight_bytes,
                          .kv_bytes = cost.kv_bytes,
                          .activation_bytes = cost.activation_bytes});
    }
  }
  return out;
}

}  // namespace llmprof::analyze
