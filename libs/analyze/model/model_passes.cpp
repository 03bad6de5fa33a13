#include "analyze/model/model_passes.h"

#include <algorithm>
#include <array>
#include <tuple>

namespace llmprof::analyze {

namespace {

std::optional<model::PassKind> kind_of(std::string_view stage) {
  static constexpr std::array<std::string_view, 4> kInference{"prefill", "decode", "mixed", "verify"};
  if (std::ranges::find(kInference, stage) != kInference.end()) return model::PassKind::kInference;
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

namespace {

// `count` sequences that share `tokens` and `contexts` as evenly as whole numbers allow.
void add_alike(std::int64_t count, std::int64_t tokens, std::int64_t contexts, std::vector<model::Sequences>& out) {
  if (count <= 0) return;
  const std::int64_t longer = tokens % count, deeper = contexts % count;
  const std::int64_t each = tokens / count, context = contexts / count;
  // Those with one token more are among those with one key more, or the other way round.
  const std::int64_t both = std::min(longer, deeper), either = std::max(longer, deeper);
  const auto add = [&](std::int64_t n, std::int64_t more_tokens, std::int64_t more_context) {
    if (n <= 0) return;
    const std::int64_t own = each + more_tokens;
    out.push_back({.count = n, .tokens = own, .context = std::max(own, context + more_context), .sampled = 1});
  };
  add(both, 1, 1);
  add(either - both, longer > deeper ? 1 : 0, longer > deeper ? 0 : 1);
  add(count - either, 0, 0);
}

struct Lengths {
  std::int64_t sequences = 0, tokens = 0, generating = 0;
};

// Least work: alike, and what was there before is seen by as few new tokens as possible.
std::vector<model::Sequences> least_work(const Lengths& l, std::int64_t contexts) {
  std::vector<model::Sequences> out;
  const std::int64_t before = contexts - l.tokens;
  const std::int64_t prompts = l.sequences - l.generating, prompt_tokens = l.tokens - l.generating;
  if (l.generating > 0) {
    add_alike(l.generating, l.generating, l.generating + before, out);
    add_alike(prompts, prompt_tokens, prompt_tokens, out);
  } else if (l.tokens == l.sequences || l.sequences == 1) {
    add_alike(l.sequences, l.tokens, contexts, out);
  } else if (before >= l.tokens / l.sequences) {
    out.push_back({.count = 1, .tokens = 1, .context = 1 + before, .sampled = 1});
    add_alike(l.sequences - 1, l.tokens - 1, l.tokens - 1, out);
  } else {
    add_alike(l.sequences, l.tokens, l.tokens, out);
  }
  return out;
}

// Most work: one sequence has all that the others do not need.
std::vector<model::Sequences> most_work(const Lengths& l, std::int64_t contexts) {
  const std::int64_t prompts = l.sequences - l.generating;
  const std::int64_t tokens = prompts > 0 ? l.tokens - (l.sequences - 1) : 1;
  std::vector<model::Sequences> out{
      {.count = 1, .tokens = tokens, .context = contexts - (l.sequences - 1), .sampled = 1}};
  if (l.sequences > 1) out.push_back({.count = l.sequences - 1, .tokens = 1, .context = 1, .sampled = 1});
  return out;
}

// Where the pairs of attention are known, costs lie as far between the bounds as those do.
double pairs_in(const std::vector<model::Sequences>& sequences) {
  double pairs = 0;
  for (const model::Sequences& s : sequences) {
    const auto n = static_cast<double>(s.tokens), c = static_cast<double>(s.context);
    pairs += static_cast<double>(s.count) * (n * c - n * (n - 1) / 2);
  }
  return pairs;
}

struct Costed {
  std::vector<model::OpCost> least;
  std::vector<std::optional<model::Costs>> most;
};

Costed cost(const model::Graph& graph, const PassBounds& bounds, std::optional<std::int64_t> pairs,
            const model::Conditions& conditions, const std::map<std::string, std::string>& fused) {
  Costed out;
  out.least = with_fused(model::analyze(graph, bounds.alike, conditions), fused);
  out.most.resize(out.least.size());
  if (!bounds.apart) return out;
  const std::vector<model::OpCost> apart = with_fused(model::analyze(graph, *bounds.apart, conditions), fused);
  const double from = pairs_in(bounds.alike.sequences), to = pairs_in(bounds.apart->sequences);
  std::optional<double> part;
  if (pairs && to > from) part = std::clamp((static_cast<double>(*pairs) - from) / (to - from), 0.0, 1.0);
  for (std::size_t i = 0; i < apart.size(); ++i) {
    model::OpCost& low = out.least[i];
    model::Costs high = apart[i];
    for (double model::Costs::*amount : {&model::Costs::flops, &model::Costs::weight_bytes, &model::Costs::kv_bytes,
                                         &model::Costs::activation_bytes}) {
      double& a = low.*amount;
      double& b = high.*amount;
      if (part) a = b = a + *part * (b - a);
      if (a > b) std::swap(a, b);
    }
    out.most[i] = high;
  }
  return out;
}

}  // namespace

std::optional<PassBounds> bounds_of(const StepSize& size, std::string_view stage) {
  if (size.context || !size.contexts) {
    std::optional<model::Pass> pass = pass_of(size, stage);
    if (!pass) return std::nullopt;
    return PassBounds{*pass, *pass};
  }
  const std::optional<model::PassKind> kind = kind_of(stage);
  if (kind != model::PassKind::kInference || !size.batch) return std::nullopt;
  Lengths lengths{.sequences = *size.batch, .generating = size.generating.value_or(0)};
  lengths.tokens = size.rows ? *size.rows : *size.batch * size.tokens.value_or(0);
  if (lengths.sequences <= 0 || lengths.tokens < lengths.sequences) return std::nullopt;
  if (lengths.generating < 0 || lengths.generating > lengths.sequences) return std::nullopt;
  // Without prompts every new token is one of a sequence that generates.
  if (lengths.generating == lengths.sequences && lengths.tokens != lengths.sequences) return std::nullopt;
  PassBounds bounds{.alike = {*kind, least_work(lengths, std::max(*size.contexts, lengths.tokens))}, .apart = {}};
  if (size.contexts_most && *size.contexts_most >= lengths.tokens)
    bounds.apart = model::Pass{*kind, most_work(lengths, *size.contexts_most)};
  return bounds;
}

ModelPasses model_passes(const std::vector<Step>& steps, const GraphOfProcess& graph_of, std::int64_t on_chip_bytes,
                         const std::map<std::string, std::string>& fused, trace::Strings& strings,
                         const std::map<std::string, double>& recomputed, const hw::Roofline& roofline) {
  ModelPasses out;
  using Key = std::tuple<const model::Graph*, model::PassKind, std::array<std::int64_t, 8>>;
  std::map<Key, std::int64_t> known;
  for (const Step& step : steps) {
    const std::optional<PassBounds> bounds = bounds_of(step.size, strings.text(step.stage));
    out.pass_of_step.emplace_back();
    const model::Graph* graph = bounds ? graph_of(step.process_id) : nullptr;
    if (graph == nullptr) continue;
    const StepSize& s = step.size;
    const bool sized = bounds->alike.kind != model::PassKind::kOptimizer;
    const Key key{graph, bounds->alike.kind,
                  sized ? std::array{s.batch.value_or(-1), s.tokens.value_or(-1), s.context.value_or(-1),
                                     s.rows.value_or(-1), s.contexts.value_or(-1), s.contexts_most.value_or(-1),
                                     s.generating.value_or(-1), s.pairs.value_or(-1)}
                        : std::array<std::int64_t, 8>{}};
    const auto next = static_cast<std::int64_t>(known.size() + 1);
    const auto [entry, fresh] = known.try_emplace(key, next);
    out.pass_of_step.back() = entry->second;
    if (!fresh) continue;
    std::int64_t sequences = 0, tokens = 0, contexts = 0;
    for (const model::Sequences& each : bounds->alike.sequences) {
      sequences += each.count;
      tokens += each.count * each.tokens;
      contexts += each.count * each.context;
    }
    const Costed costs = cost(*graph, *bounds, s.pairs, {.on_chip_bytes = on_chip_bytes}, fused);
    std::vector<model::OpCost> forward;  // operator by operator, where some of it is computed again
    if (bounds->alike.kind == model::PassKind::kBackward && !recomputed.empty())
      forward = with_fused(model::analyze(*graph, {model::PassKind::kForward, bounds->alike.sequences}, {}), fused);
    for (std::size_t i = 0; i < costs.least.size(); ++i) {
      const model::OpCost& least = costs.least[i];
      trace::ModelOpRow row{.pass_id = next,
                            .batch = sequences,
                            .tokens = tokens / sequences,
                            .context = contexts / sequences,
                            .module = strings.intern(least.module),
                            .op = strings.intern(least.op),
                            .flops = least.flops,
                            .weight_bytes = least.weight_bytes,
                            .kv_bytes = least.kv_bytes,
                            .activation_bytes = least.activation_bytes,
                            .compute_ns = roofline.compute_ns(least.arithmetic, least.flops)};
      if (i < forward.size()) {
        const auto again = recomputed.find(least.op);
        if (again != recomputed.end()) row.recomputed_flops = again->second * forward[i].flops;
      }
      if (costs.most[i]) row.flops_most = costs.most[i]->flops, row.most_bytes = costs.most[i]->bytes();
      out.rows.push_back(row);
    }
  }
  return out;
}

}  // namespace llmprof::analyze
