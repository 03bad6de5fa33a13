// How much of decode's bytes are its KV cache, and what makes it smaller.

#include "analyze/rules/tools.h"

namespace llmprof::analyze::kv_cache_traffic {
namespace {

constexpr double kLeastShare = 0.2;  // of the bytes that must move

// Sequence length at which the cache of `batch` sequences has as many bytes as the weights.
std::optional<double> crossing(const ModelShape& model, double batch) {
  if (model.kv_bytes_per_token <= 0 || batch <= 0) return std::nullopt;
  return model.weights_read_bytes / (batch * model.kv_bytes_per_token);
}

std::vector<std::string> advice_for(const ModelShape& model) {
  std::vector<std::string> out;
  if (model.kv_bytes_each > 1)
    out.push_back(fmt::format(
        "Store the cache in 8 bits instead of {} (fp8 KV cache of the engine): half its bytes; check the quality.",
        model.kv_type));
  if (model.latent) {
    out.emplace_back(
        "The model keeps one latent per token already (MLA): shorter contexts or a window are what is left.");
  } else if (model.kv_heads == model.heads) {
    out.push_back(fmt::format(
        "Every head has keys and values of its own (MHA): grouped queries with {} of {} heads would keep an eighth.",
        std::max<std::int64_t>(1, model.heads / 8), model.heads));
  } else {
    out.push_back(
        fmt::format("{} query heads share {} key-value heads (GQA) already: a latent cache (MLA), or fewer key-value "
                    "heads, in the next model.",
                    model.heads, model.kv_heads));
  }
  out.emplace_back("Attend to a window in some layers, or evict and share prefixes of the cache.");
  return out;
}

Finding finding_of(const RuleInput& run, const StageView& view, const OperatorBytes& all, double batch) {
  const ModelShape& model = run.facts.model;
  const std::string& stage = view.stage->name;
  const double share = all.kv_bytes / all.bytes();
  Finding out{.stage = stage};
  out.title = fmt::format("{} of the bytes of {} are its KV cache", human_percent(share), stage);
  out.text = fmt::format("Each step moves {} of cache beside {} of weights; both grow the time alike.",
                         human_bytes(all.kv_bytes / view.steps), human_bytes(all.weight_bytes / view.steps));
  out.lever = "an 8-bit KV cache (if the quality allows)";
  const double per_byte = view.busy_ns() / all.bytes();
  if (view.held_by_launches()) {
    out.text += hidden_by_launches(view);
  } else if (model.kv_bytes_each > 1) {
    const double saved = all.kv_bytes * (1 - 1 / model.kv_bytes_each) * per_byte;
    out.set_gain(saved, view.total_ns,
                 fmt::format("{} less per step in 8 bits, at the {} that the stage's kernels reach",
                             human_bytes(all.kv_bytes / view.steps * (1 - 1 / model.kv_bytes_each)),
                             human_rate(1e9 / per_byte, "B/s")));
  }
  out.add_fraction("kv_share", "KV cache that must be read or written", share,
                   human_bytes(all.bytes()) + " that must move", "analytic",
                   "SELECT op, context, kv_bytes FROM model_op WHERE kv_bytes > 0 ORDER BY kv_bytes DESC");
  out.add_number("model.kv_bytes_per_token", "cache of one token, all layers", model.kv_bytes_per_token, "B",
                 "analytic");
  out.add_number("kv_crossing", "context from which on the cache has more bytes than the weights, at this batch",
                 crossing(model, batch), "tokens", "analytic");
  out.advice = advice_for(model);
  return out;
}

}  // namespace

RuleResult check(const RuleInput& run) {
  if (!run.facts.model.known) return not_applicable("the model is unknown");
  RuleResult out;
  bool any = false;
  for (const StageView& view : steady_stages(run.summary)) {
    const StageBytes* costs = find_by(run.facts.bytes, view.stage->name, &StageBytes::stage);
    if (costs == nullptr || (view.stage->name != "decode" && view.stage->name != "mixed")) continue;
    const OperatorBytes all = costs->all();
    if (all.bytes() <= 0) continue;
    any = true;
    if (all.kv_bytes >= kLeastShare * all.bytes() && view.stage->efficiency.bound != "compute") {
      out.findings.push_back(finding_of(run, view, all, costs->batch));
      continue;
    }
    const std::optional<double> cross = crossing(run.facts.model, costs->batch);
    out.add_why(view.stage->name,
                fmt::format("the cache is {} of the bytes at a context of {:.0f}{}",
                            human_percent(all.kv_bytes / all.bytes()), costs->context,
                            cross ? fmt::format("; it reaches those of the weights at {:.0f} tokens", *cross) : ""));
  }
  if (!any) return not_applicable("no decode steps with a known batch and context");
  return out;
}

}  // namespace llmprof::analyze::kv_cache_traffic
