#include "analyze/model_passes.h"

#include <tuple>

namespace llmprof::analyze {

namespace {

std::optional<model::PassKind> kind_of(std::string_view stage) {
  if (stage == "prefill" || stage == "decode" || stage == "mixed") return model::PassKind::kInference;
  if (stage == "forward") return model::PassKind::kForward;
  if (stage == "backward") return model::PassKind::kBackward;
  if (stage == "optimizer") return model::PassKind::kOptimizer;
  return std::nullopt;
}

// Operators that are fused stand beside each other.
std::vector<model::OpCost> with_fused(std::vector<model::OpCost> costs,
                                      const std::map<std::string, std::string>& fused) {
  if (fused.empty()) return costs;
  std::vector<model::OpCost> out;
  for (model::OpCost& cost : costs) {
    if (const auto found = fused.find(cost.op); found != fused.end()) {
      cost.module = cost.module.substr(0, cost.module.size() - cost.op.size()) + found->second;
      cost.op = found->second;
    }
    if (!out.empty() && out.back().module == cost.module) {
      out.back() += cost;
    } else {
      out.push_back(std::move(cost));
    }
  }
  return out;
}

}  // namespace

bool has_formula(std::string_view stage) { return kind_of(stage).has_value(); }

std::optional<model::Pass> pass_of(const StepSize& size, std::string_view stage) {
  const std::optional<model::PassKind> kind = kind_of(stage);
  if (!kind) return std::nullopt;
  // The same whatever was learned from.
  if (*kind == model::PassKind::kOptimizer) return model::Pass{.kind = *kind, .sequences = {{}}};
  if (!size.batch || !size.tokens) return std::nullopt;
  if (!size.context && stage == "decode") return std::nullopt;  // its length is not its one new token
  return model::Pass{.kind = *kind,
                     .sequences = {{.count = *size.batch,
                                    .tokens = *size.tokens,
                                    .context = size.context.value_or(*size.tokens),
                                    .sampled = 1}}};  // training wants every position, and the model knows that
}

ModelPasses model_passes(const std::vector<Step>& steps, const model::Graph& graph, std::int64_t on_chip_bytes,
                         const std::map<std::string, std::string>& fused, trace::Strings& strings) {
  ModelPasses out;
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t, model::PassKind>, std::int64_t> known;
  for (const Step& step : steps) {
    const std::optional<model::Pass> pass = pass_of(step.size, strings.text(step.stage));
    out.pass_of_step.emplace_back();
    if (!pass) continue;
    const model::Sequences& sequences = pass->sequences.front();
    const auto next = static_cast<std::int64_t>(known.size() + 1);
    const auto [entry, fresh] =
        known.try_emplace({sequences.count, sequences.tokens, sequences.context, pass->kind}, next);
    out.pass_of_step.back() = entry->second;
    if (!fresh) continue;
    for (const model::OpCost& cost :
         with_fused(model::analyze(graph, *pass, {.on_chip_bytes = on_chip_bytes}), fused)) {
      out.rows.push_back({.pass_id = next,
                          .batch = sequences.count,
                          .tokens = sequences.tokens,
                          .context = sequences.context,
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
