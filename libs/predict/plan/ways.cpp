// What there is to try, and what a configuration costs.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "predict/plan/plan.h"

namespace llmprof::predict::plan {
namespace {

// Tried beside the engine's own limits. Fewer tokens in a step make it shorter for the requests that decode in it.
constexpr std::int64_t kSeqs[] = {64};
constexpr std::int64_t kTokens[] = {2048, 512};

bool given(const serving::EngineRules& rules, std::string_view key) {
  return std::ranges::any_of(rules.sources, [&](const auto& row) { return row.key == key && row.source == "given"; });
}

std::vector<std::int64_t> values(const serving::EngineRules& rules, std::string_view key, std::int64_t own,
                                 std::span<const std::int64_t> others, bool vary) {
  std::vector<std::int64_t> out{own};
  if (!vary || given(rules, key)) return out;
  for (const std::int64_t other : others) {
    if (other < own) out.push_back(other);
  }
  return out;
}

// vLLM splits heads evenly, and either splits key-value heads evenly or copies them evenly.
bool divides(const model::Config& config, std::int64_t ranks) {
  return std::ranges::all_of(config.kinds, [&](const model::LayerKind& kind) {
    const std::int64_t heads = kind.attention.heads, kv = std::max<std::int64_t>(1, kind.attention.kv_heads);
    return heads % ranks == 0 && (kind.attention.latent() || kv % ranks == 0 || ranks % kv == 0);
  });
}

bool has_experts(const model::Config& config) {
  return std::ranges::any_of(config.kinds, [](const model::LayerKind& kind) { return kind.mlp.experts > 0; });
}

}  // namespace

Result<std::vector<Way>> ways(const Asked& asked) {
  std::vector<Way> out;
  for (std::size_t device = 0; device < asked.devices.size(); ++device) {
    for (const std::string& dtype : asked.dtypes) {
      Deployment deployment = asked.deployment;
      deployment.dtype = dtype;
      LLMPROF_LET(const ServingInput input, serving_input(deployment, asked.model, asked.devices[device], {}));
      const serving::EngineRules& rules = input.rules;
      const bool chunks = rules.scheduler == serving::SchedulerKind::kContinuous && rules.enable_chunked_prefill;
      for (const std::int64_t tensor : asked.tensor) {
        if (tensor > asked.most_devices || !divides(input.config, tensor)) continue;
        if (!model::shard(input.config, {.tensor = tensor}, {})) continue;
        std::vector<std::int64_t> experts{1};
        if (tensor > 1 && has_experts(input.config)) experts.push_back(tensor);
        for (const std::int64_t expert : experts) {
          if (!model::shard(input.config, {.tensor = tensor, .expert = expert}, {})) continue;
          for (const std::int64_t seqs : values(rules, "max_num_seqs", rules.max_num_seqs, kSeqs, true)) {
            for (const std::int64_t tokens :
                 values(rules, "max_num_batched_tokens", rules.max_num_batched_tokens, kTokens, chunks)) {
              if (chunks && tokens < seqs) continue;  // every running request needs a token
              out.push_back({device, dtype, tensor, expert, seqs, tokens});
            }
          }
        }
      }
    }
  }
  if (!out.empty()) return out;
  return Error{
      ErrorCode::kUsage,
      fmt::format("there is nothing to try: of tensor parallelism {} no degree divides the heads of this model "
                  "evenly within {} devices",
                  fmt::join(asked.tensor, ", "), asked.most_devices),
      "--tp says which degrees are tried, --max-devices how many devices there may be"};
}

std::optional<double> price_of(const Asked& asked, const Configuration& configuration, const Load& load) {
  const auto found = asked.prices.find(asked.devices[configuration.way.device].device.name);
  if (found == asked.prices.end()) return std::nullopt;
  return found->second * static_cast<double>(configuration.devices(load));
}

double tokens_per_s(const Asked& asked, const Load& load) {
  if (asked.rate <= 0) return load.output_tokens_per_s;
  double output = 0;
  for (const serving::Request& request : asked.workload.requests) output += request.output_tokens;
  return asked.rate * output / static_cast<double>(asked.workload.requests.size());
}

std::optional<double> energy_per_token(const Asked& asked, const Configuration& configuration, const Load& load) {
  const hw::DeviceSpec* spec = asked.devices[configuration.way.device].spec;
  const hw::Figure* power = spec == nullptr ? nullptr : spec->figure("power");
  const double rate = tokens_per_s(asked, load);
  if (power == nullptr || rate <= 0) return std::nullopt;
  return power->value * static_cast<double>(configuration.devices(load)) / rate;
}

Objectives objectives_of(const Asked& asked, const Configuration& configuration, const Load& load, bool longest) {
  Objectives out;
  out.cost = asked.prices.empty() ? static_cast<double>(configuration.devices(load))
                                  : Objectives::of(price_of(asked, configuration, load));
  out.energy = Objectives::of(energy_per_token(asked, configuration, load));
  // In steps of 5 % of the limit: closer is the same, as no simulation is that exact.
  out.latency = std::ceil(20 * (longest ? load.longest : load.predicted).of_slo - 1e-9);
  return out;
}

}  // namespace llmprof::predict::plan
