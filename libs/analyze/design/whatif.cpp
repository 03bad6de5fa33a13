#include "analyze/design/whatif.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/axis.h"
#include "base/errors.h"
#include "base/suggest.h"
#include "model/change.h"

namespace llmprof::analyze::design {
namespace {

template <auto kMember>
std::int64_t* option_of(ModelSetup& setup) {
  return &(setup.options.*kMember);
}
template <auto kMember>
std::int64_t* parallel_of(ModelSetup& setup) {
  return &(setup.options.parallel.*kMember);
}

// How a model is run; what it is: model/change.h.
struct Key {
  std::string_view name;
  std::int64_t* (*place)(ModelSetup&);
};
constexpr Key kKeys[] = {
    {"batch", option_of<&Options::batch>},           {"prompt", option_of<&Options::prompt>},
    {"context", option_of<&Options::context>},       {"tp", parallel_of<&model::Parallel::tensor>},
    {"pp", parallel_of<&model::Parallel::pipeline>}, {"ep", parallel_of<&model::Parallel::expert>}};

std::optional<double> less(const std::optional<double>& a, const std::optional<double>& b) {
  return a && b ? std::optional(*a - *b) : std::nullopt;
}

std::optional<double> ns_of(const Priced& priced, std::string_view stage) {
  const PricedStage* found = priced.stage(stage);
  return found == nullptr ? std::nullopt : std::optional(found->ns);
}

// Puts the ratio of two predictions on a measured stage.
void apply(const Priced& before, const Priced& after, const MeasuredStage& measured, ExpectedStage& out) {
  const PricedStage *a = before.stage(measured.stage), *b = after.stage(measured.stage);
  if (a == nullptr || b == nullptr || !(a->ns > 0) || !(b->ns > 0)) return;
  out.predicted_before_ns = a->ns, out.predicted_after_ns = b->ns, out.ratio = b->ns / a->ns;
  const double own = before.with_host ? measured.ns : measured.ns * std::clamp(measured.busy.value_or(1), 0.0, 1.0);
  if (!(own > 0)) return;
  out.error = a->ns / own - 1;
  const double off = std::max(a->ns / own, own / a->ns);
  if (off > kFarthest) return;
  const double idle = measured.ns - own, changed = own * b->ns / a->ns;
  // A run that beats its floor says that the peaks are too low, and how much at least.
  const double floor = out.floor_after_ns * std::min(1.0, measured.ns / out.floor_before_ns);
  out.expected_ns = std::max(floor, idle + changed);
  out.least_ns = std::max(floor, idle + changed / off * b->least);
  out.most_ns = idle + std::max(0.0, *out.expected_ns - idle) * off * b->most;
  out.by = after.by();
}

// A setting, and the part of its difference that is of one more.
struct More {
  std::string what, setting;
  std::int64_t parts = 1;
};

// Heads share key-value heads evenly, so one more may not exist: the next number that does, divided.
void add_heads(const model::Attention& attention, std::vector<More>& out) {
  if (attention.latent() || attention.kv_heads < 1) return;
  const std::int64_t heads = attention.heads, kv = attention.kv_heads;
  out.push_back({"1 query head more", fmt::format("heads={}", heads + kv), kv});
  std::int64_t other = kv + 1;
  while (other <= heads && heads % other != 0) ++other;
  if (other > heads) {
    for (other = kv - 1; other > 1 && heads % other != 0;) --other;
  }
  if (other >= 1 && other != kv)
    out.push_back({"1 key-value head more", fmt::format("kv_heads={}", other), other - kv});
}

std::vector<More> one_more(const model::Config& config, const Options& options) {
  std::vector<More> out = {{"1 layer more", fmt::format("layers={}", config.layers() + 1)}};
  const model::LayerKind& kind = config.kinds.front();
  add_heads(kind.attention, out);
  for (const model::LayerKind& each : config.kinds) {
    if (each.mlp.experts == 0) continue;
    out.push_back({"1 expert per token more", fmt::format("experts_per_token={}", each.mlp.experts_per_token + 1)});
    break;
  }
  out.push_back({"1 k more context", fmt::format("context={}", options.context + 1024)});
  out.push_back({"1 k more prompt", fmt::format("prompt={}", options.prompt + 1024)});
  out.push_back({"1 sequence more", fmt::format("batch={}", options.batch + 1)});
  out.push_back({"twice the batch", fmt::format("batch={}", 2 * options.batch)});
  return out;
}

}  // namespace

std::vector<std::string> setting_keys() {
  std::vector<std::string> keys(model::change_keys().begin(), model::change_keys().end());
  for (const Key& key : kKeys) keys.emplace_back(key.name);
  keys.emplace_back("device");
  return keys;
}

Result<void> set(ModelSetup& setup, std::string_view setting) {
  const std::size_t equals = setting.find('=');
  const std::string_view key = setting.substr(0, equals);
  if (equals == std::string_view::npos || equals + 1 == setting.size())
    return Error{ErrorCode::kUsage, fmt::format("--set: '{}' is not KEY=VALUE", setting),
                 "as in --set dtype=float8 --set kv_heads=4"};
  const std::string_view value = setting.substr(equals + 1);
  if (model::is_change_key(key)) return model::change(setup.subject.config, key, value);
  const auto* const found = std::ranges::find(kKeys, key, &Key::name);
  if (found == std::end(kKeys)) {
    return Error{ErrorCode::kUsage, fmt::format("--set: nothing is called '{}'", key),
                 base::did_you_mean(key, setting_keys())};
  }
  const Result<std::int64_t> count = base::parse_count(value);
  if (!count || *count < 1 || *count > kMost)
    return usage_error("--set {}: '{}' is not a number from 1 on", key, value);
  *found->place(setup) = *count;
  return {};
}

std::string_view source_name(Source source) {
  switch (source) {
    case Source::kProgram:
      return "program's kernels";
    case Source::kTables:
      return "operator tables";
    default:
      return "floor";
  }
}

std::string Priced::by() const { return std::string(source_name(source)) + (scaled ? ", scaled" : ""); }

const PricedStage* Priced::stage(std::string_view name) const {
  const auto found = std::ranges::find(stages, name, &PricedStage::stage);
  return found == stages.end() ? nullptr : &*found;
}

Result<Priced> price_at_floor(const ModelSetup& setup, Source /*at_most*/) {
  LLMPROF_LET(const Design design, make_design(setup.subject, setup.options, setup.roof));
  const model::Config& config = setup.subject.config;
  const std::int64_t longest = std::max(design.options.prompt, design.options.context);
  if (config.position_table && config.positions > 0 && longest > config.positions)
    return usage_error("{} tokens: this model has {} positions", longest, config.positions);
  Priced out{.tokens_per_s = design.speeds.tokens_per_s,
             .memory_bytes = design.memory.needed(),
             .device_bytes = design.memory.device};
  if (design.speeds.ttft_ns) out.stages.push_back({"prefill", *design.speeds.ttft_ns});
  if (design.speeds.tpot_ns) out.stages.push_back({"decode", *design.speeds.tpot_ns});
  if (const Stage* prefill = design.stage("prefill")) out.prefill_flops = prefill->costs.flops;
  if (const Stage* decode = design.stage("decode")) out.decode_flops = decode->costs.flops;
  return out;
}

Result<std::pair<Priced, Priced>> price_both(const Pricer& pricer, const ModelSetup& a, const ModelSetup& b) {
  LLMPROF_LET(Priced first, pricer(a, Source::kProgram));
  LLMPROF_LET(Priced second, pricer(b, first.source));
  if (second.source < first.source) {
    LLMPROF_LET(first, pricer(a, second.source));
  }
  if (first.source < second.source) {
    LLMPROF_LET(second, pricer(b, first.source));
  }
  return std::pair(std::move(first), std::move(second));
}

std::vector<ExpectedStage> expected(const Design& before, const Design& after,
                                    const std::vector<MeasuredStage>& measured,
                                    const std::optional<std::pair<Priced, Priced>>& predicted) {
  std::vector<ExpectedStage> out;
  for (const MeasuredStage& stage : measured) {
    const Stage *a = before.stage(stage.stage), *b = after.stage(stage.stage);
    if (a == nullptr || b == nullptr || !a->floor.ns || !b->floor.ns || !(*a->floor.ns > 0) || !(stage.ns > 0))
      continue;
    const double busy_ns = stage.ns * std::clamp(stage.busy.value_or(1), 0.0, 1.0);
    const double by_floor = std::max(*b->floor.ns, stage.ns + *b->floor.ns - *a->floor.ns);
    const double by_ratio = std::max(*b->floor.ns, stage.ns - busy_ns + busy_ns * *b->floor.ns / *a->floor.ns);
    ExpectedStage row{.stage = stage.stage, .measured_ns = stage.ns};
    row.floor_before_ns = *a->floor.ns, row.floor_after_ns = *b->floor.ns;
    row.least_ns = std::min(by_floor, by_ratio), row.most_ns = std::max(by_floor, by_ratio);
    row.by = source_name(Source::kFloor);
    if (predicted && predicted->second.source != Source::kFloor) apply(predicted->first, predicted->second, stage, row);
    out.push_back(std::move(row));
  }
  return out;
}

Result<std::vector<Gradient>> gradients(const ModelSetup& setup, const Pricer& pricer) {
  LLMPROF_LET(const Options options, complete(setup.options, setup.subject.config));
  std::vector<Gradient> out;
  for (const More& more : one_more(setup.subject.config, options)) {
    ModelSetup changed = setup;
    changed.options = options;  // a longer prompt leaves the context where it is
    if (!set(changed, more.setting)) continue;
    ModelSetup base = setup;
    base.options = options;
    const auto both = price_both(pricer, base, changed);
    if (!both) continue;  // longer than the model's table of positions
    const auto& [a, b] = *both;
    const double parts = static_cast<double>(more.parts);
    const auto part = [&](const std::optional<double>& x) { return x ? std::optional(*x / parts) : x; };
    out.push_back({.what = more.what,
                   .ttft_ns = part(less(ns_of(b, "prefill"), ns_of(a, "prefill"))),
                   .tpot_ns = part(less(ns_of(b, "decode"), ns_of(a, "decode"))),
                   .tokens_per_s = part(less(b.tokens_per_s, a.tokens_per_s)),
                   .memory_bytes = (b.memory_bytes - a.memory_bytes) / parts,
                   .decode_flops = (b.decode_flops - a.decode_flops) / parts,
                   .by = b.by(),
                   .setting = more.setting,
                   .parts = more.parts});
  }
  return out;
}

}  // namespace llmprof::analyze::design
