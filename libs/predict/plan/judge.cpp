#include "predict/plan/judge.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

namespace llmprof::predict::plan {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

struct Times {
  double ttft_ns = 0, e2e_ns = 0;
  std::optional<double> tpot_ns;  // nothing: a single token
};
constexpr Times kRefused{kNever, kNever, kNever};

Judged judge(const std::vector<Times>& requests, const Limits& limits) {
  struct Quantity {
    std::string_view name;
    std::optional<double> limit_ns;
    std::vector<double> values;
  };
  Quantity ttft{"TTFT", limits.slo.ttft_ns, {}}, tpot{"TPOT", limits.slo.tpot_ns, {}},
      e2e{"E2E", limits.slo.e2e_ns, {}};
  std::vector<double> worst;
  double good = 0;
  for (const Times& times : requests) {
    ttft.values.push_back(times.ttft_ns), e2e.values.push_back(times.e2e_ns);
    if (times.tpot_ns) tpot.values.push_back(*times.tpot_ns);
    double of_slo = 0;
    if (ttft.limit_ns) of_slo = std::max(of_slo, times.ttft_ns / *ttft.limit_ns);
    if (tpot.limit_ns && times.tpot_ns) of_slo = std::max(of_slo, *times.tpot_ns / *tpot.limit_ns);
    if (e2e.limit_ns) of_slo = std::max(of_slo, times.e2e_ns / *e2e.limit_ns);
    worst.push_back(of_slo);
    good += of_slo <= 1 ? 1 : 0;
  }
  Judged out;
  out.good_share = requests.empty() ? 0 : good / static_cast<double>(requests.size());
  out.of_slo = value_kept(std::move(worst), limits.share);
  double most = -1;
  for (const auto& [quantity, into] : {std::pair(&ttft, &out.ttft_ns), {&tpot, &out.tpot_ns}, {&e2e, &out.e2e_ns}}) {
    *into = value_kept(std::move(quantity->values), limits.share);
    if (!quantity->limit_ns || *into / *quantity->limit_ns <= most) continue;
    most = *into / *quantity->limit_ns;
    out.limit = quantity->name;
  }
  return out;
}

// A request without others: first token, and the mean decode step at its mean context (steps grow with the context at
// most linearly, so the mean of the steps is not below the step of the mean).
Times times_alone(std::int64_t prompt, std::int64_t output, std::int64_t cached, const serving::EngineRules& rules,
                  StepCost& cost) {
  const std::int64_t budget = rules.max_num_batched_tokens > 0 ? rules.max_num_batched_tokens : prompt;
  Times out;
  for (std::int64_t at = cached; at < prompt;) {
    const std::int64_t tokens = std::min(budget, prompt - at);
    Batch batch;
    batch.chunks.push_back({tokens, at});
    at += tokens;
    batch.sampled = at == prompt ? 1 : 0;
    out.ttft_ns += cost.of(batch).device_ns;
  }
  out.e2e_ns = out.ttft_ns;
  if (output < 2) return out;
  Batch batch;
  batch.contexts.push_back(prompt + output / 2);
  batch.sampled = 1;
  out.tpot_ns = cost.of(batch).device_ns;
  out.e2e_ns += *out.tpot_ns * static_cast<double>(output - 1);
  return out;
}

}  // namespace

double value_kept(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  const auto count = static_cast<double>(values.size());
  const double rank = std::clamp(std::ceil(share * count - 1e-9), 1.0, count);  // 0.99 x 300 is 297, not 298
  const auto place = values.begin() + static_cast<std::ptrdiff_t>(rank) - 1;
  std::nth_element(values.begin(), place, values.end());
  return *place;
}

Judged judge(const serving::Simulation& simulation, const Limits& limits) {
  std::vector<Times> requests;
  requests.reserve(simulation.requests.size());
  for (const serving::RequestResult& request : simulation.requests) {
    if (request.rejection != serving::Rejection::kNone) {
      requests.push_back(kRefused);
      continue;
    }
    Times times{request.first_token_ns - request.arrival_ns, request.last_token_ns - request.arrival_ns, {}};
    if (request.output_tokens > 1)
      times.tpot_ns = (request.last_token_ns - request.first_token_ns) / (request.output_tokens - 1);
    requests.push_back(times);
  }
  return judge(requests, limits);
}

Judged judge_alone(const serving::Workload& workload, const serving::EngineRules& rules, StepCost& cost,
                   const Limits& limits) {
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, Times> known;  // many requests are alike
  std::vector<Times> requests;
  requests.reserve(workload.requests.size());
  for (const serving::Request& request : workload.requests) {
    std::int64_t cached = 0;
    if (rules.enable_prefix_caching) {
      const auto described = static_cast<std::int64_t>(request.id_count) * workload.content_tokens;
      cached = std::max<std::int64_t>(0, std::min<std::int64_t>(described, request.prompt_tokens - 1));
    }
    const auto key = std::tuple(std::int64_t{request.prompt_tokens}, std::int64_t{request.output_tokens}, cached);
    const auto [place, fresh] = known.try_emplace(key);
    if (fresh) place->second = times_alone(std::get<0>(key), std::get<1>(key), cached, rules, cost);
    requests.push_back(place->second);
  }
  return judge(requests, limits);
}

}  // namespace llmprof::predict::plan
