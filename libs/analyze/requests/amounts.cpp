// What requests used and what that cost: distributions over them.

#include <algorithm>
#include <cmath>
#include <functional>

#include "analyze/requests/answers.h"

namespace llmprof::analyze {
namespace {

constexpr double kNsPerHour = 3600e9;

struct Amount {
  const char* metric;
  const char* unit;
  const char* definition;
  std::function<std::optional<double>(const RequestFigures&)> of;
};

std::optional<double> seconds(std::optional<std::int64_t> ns) {
  return ns ? std::optional(static_cast<double>(*ns) * 1e-9) : std::nullopt;
}
std::optional<double> of_steps(const RequestFigures& request, std::int64_t ns) {
  return request.steps > 0 ? seconds(ns) : std::nullopt;
}

const std::vector<Amount>& kinds() {
  using R = const RequestFigures&;
  static const std::vector<Amount> all = {
      {"time", "s", "its part of the steps' time", [](R r) { return of_steps(r, r.time_ns); }},
      {"device", "s", "of it, with the device at work", [](R r) { return of_steps(r, r.device_ns); }},
      {"prompt", "s", "of it, for its prompt", [](R r) { return of_steps(r, r.prefill_time_ns); }},
      {"energy", "J", "its part of the steps' energy", [](R r) { return r.energy_j; }},
      {"cost", "", "device time with idle time x price", [](R r) { return r.cost; }},
      {"cost per 1 k tokens", "", "of 1,000 output tokens", [](R r) { return r.cost_per_1k_tokens; }},
      {"cached", "1", "of the prompt, found in the prefix cache",
       [](R r) -> std::optional<double> {
         if (!r.cached_tokens || r.prompt_tokens <= 0) return std::nullopt;
         return static_cast<double>(*r.cached_tokens) / static_cast<double>(r.prompt_tokens);
       }},
      {"preempted", "s", "preempted until it was in a step again", [](R r) { return seconds(r.preempted_ns); }},
      {"recomputed", "s", "its part of steps, for what it had computed before",
       [](R r) { return seconds(r.recomputed_ns); }},
  };
  return all;
}

void add_known(std::optional<std::int64_t>& sum, const std::optional<std::int64_t>& value) {
  if (value) sum = sum.value_or(0) + *value;
}

}  // namespace

std::int64_t quantile_rank(std::int64_t count, double q) {
  // 0.99 x 100 is a little more than 99 in doubles.
  const auto rank = static_cast<std::int64_t>(std::ceil(q * static_cast<double>(count) - 1e-9));
  return std::clamp<std::int64_t>(rank, 1, std::max<std::int64_t>(count, 1));
}

void add_amounts(Requests& all) {
  for (const Amount& kind : kinds()) {
    std::vector<double> values;
    for (const RequestFigures& request : all.all) {
      if (const auto value = kind.of(request); value && !request.warm_up) values.push_back(*value);
    }
    if (values.empty()) continue;
    std::ranges::sort(values);
    if (values.back() == 0) continue;
    const auto at = [&](double q) {
      return values[static_cast<std::size_t>(quantile_rank(std::ssize(values), q) - 1)];
    };
    double sum = 0;
    for (const double value : values) sum += value;
    all.amounts.push_back({kind.metric, kind.unit, kind.definition, std::ssize(values), sum,
                           sum / static_cast<double>(values.size()), at(0.5), at(0.9), at(0.99), values.back()});
  }
  for (const RequestFigures& request : all.all) {
    if (request.warm_up) continue;
    add_known(all.preempted_ns, request.preempted_ns);
    add_known(all.recomputed_tokens, request.recomputed_tokens);
    add_known(all.recomputed_ns, request.recomputed_ns);
  }
}

void add_cost(std::optional<double> price_per_hour, std::int64_t devices, Requests& all) {
  if (!price_per_hour || all.steps_ns <= 0) return;
  const double per_ns = *price_per_hour * static_cast<double>(devices) / kNsPerHour;
  RequestCost cost{.price_per_hour = *price_per_hour, .devices = devices};
  cost.steps = per_ns * static_cast<double>(all.steps_ns);
  cost.engine = per_ns * static_cast<double>(all.engine_ns);
  if (all.output_tokens > 0) {
    const double thousands = static_cast<double>(all.output_tokens) / 1000;
    cost.per_1k_tokens = cost.steps / thousands;
    cost.with_idle_per_1k_tokens = per_ns * static_cast<double>(all.duration_ns) / thousands;
  }
  for (RequestFigures& request : all.all) {
    if (request.steps == 0) continue;
    request.cost = per_ns * static_cast<double>(request.time_ns);
    if (request.output_tokens > 0)
      request.cost_per_1k_tokens = *request.cost * 1000 / static_cast<double>(request.output_tokens);
  }
  all.cost = cost;
}

}  // namespace llmprof::analyze
