// Why nothing meets the limits: the quantity that stands in the way, and by how much.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/human.h"
#include "predict/plan/plan.h"

namespace llmprof::predict::plan {
namespace {

using base::human_bytes;
using base::human_ns;
using base::human_percent;

std::string name_of(const Asked& asked, const Configuration& each) {
  const hw::DeviceAndPeaks& device = asked.devices[each.way.device];
  std::string out = device.device.name;
  if (each.way.tensor > 1) out = fmt::format("{} x {}, tensor parallel", each.way.tensor, out);
  if (each.way.expert > 1) out += ", experts spread over the ranks";
  return fmt::format("{}, {}", out, each.dtype);
}

// The best by a value that is to be small; nullptr: none qualifies.
template <class Qualifies, class Value>
const Configuration* best(const Plan& plan, const Qualifies& qualifies, const Value& value) {
  const Configuration* out = nullptr;
  for (const Configuration& each : plan.configurations) {
    if (qualifies(each) && (out == nullptr || value(each) < value(*out))) out = &each;
  }
  return out;
}

bool fits(const Configuration& each) { return each.outcome != Outcome::kDoesNotFit; }

std::string no_room(const Asked& asked, const Plan& plan) {
  const Configuration* nearest = best(
      plan, [](const Configuration&) { return true; },
      [](const Configuration& each) { return each.memory.before_cache() / each.granted_bytes; });
  if (nearest == nullptr) return "";
  const MemoryNeeds& needs = nearest->memory;
  return fmt::format(
      "The model fits none of the devices. Nearest is {}: a device would hold {} of weights and {} of activations "
      "and what libraries take, and the engine may use {} of it",
      name_of(asked, *nearest), human_bytes(needs.weights_bytes),
      human_bytes(needs.before_cache() - needs.weights_bytes), human_bytes(nearest->granted_bytes));
}

struct Limit {
  std::string_view name, what;
  std::optional<double> limit_ns;
  double Judged::*value;
};

// For each limit that no configuration keeps with a request alone: the least there is.
void floors(const Asked& asked, const Plan& plan, std::vector<std::string>& out) {
  const serving::Slo& slo = asked.limits.slo;
  const Limit limits[] = {{"TTFT", "prefill", slo.ttft_ns, &Judged::ttft_ns},
                          {"TPOT", "decode step", slo.tpot_ns, &Judged::tpot_ns},
                          {"E2E", "whole answer", slo.e2e_ns, &Judged::e2e_ns}};
  const auto alone = [](const Configuration& each) {
    return each.outcome != Outcome::kDoesNotFit && each.outcome != Outcome::kRefused;
  };
  for (const Limit& limit : limits) {
    if (!limit.limit_ns) continue;
    const Configuration* least = best(plan, alone, [&](const Configuration& each) { return each.alone.*limit.value; });
    if (least == nullptr || least->alone.*limit.value <= *limit.limit_ns) continue;
    out.push_back(fmt::format(
        "{} of {} cannot be: the least {} on any of these is {}, for a request alone ({}; steps as predicted)",
        limit.name, human_ns(*limit.limit_ns), limit.what, human_ns(least->alone.*limit.value),
        name_of(asked, *least)));
  }
  if (!out.empty()) return;
  const Configuration* nearest = best(plan, alone, [](const Configuration& each) { return each.alone.of_slo; });
  if (nearest == nullptr || nearest->alone.kept()) return;
  const auto part = [&](std::string_view name, const std::optional<double>& limit_ns, double ns) {
    return limit_ns ? fmt::format(", {} {} of {}", name, human_ns(ns), human_ns(*limit_ns)) : "";
  };
  out.push_back(fmt::format(
      "No configuration keeps all limits at once, even for a request alone. Nearest is {}{}{}{} (steps as predicted)",
      name_of(asked, *nearest), part("TTFT", slo.ttft_ns, nearest->alone.ttft_ns),
      part("TPOT", slo.tpot_ns, nearest->alone.tpot_ns), part("E2E", slo.e2e_ns, nearest->alone.e2e_ns)));
}

void refused(const Asked& asked, const Plan& plan, std::vector<std::string>& out) {
  const Configuration* roomy = best(
      plan, [](const Configuration& each) { return each.outcome == Outcome::kRefused; },
      [](const Configuration& each) { return -static_cast<double>(each.kv_tokens); });
  if (roomy == nullptr) return;
  std::int64_t longest = 0;
  for (const serving::Request& request : asked.workload.requests)
    longest = std::max<std::int64_t>(longest, std::int64_t{request.prompt_tokens} + request.output_tokens);
  out.push_back(fmt::format(
      "The engine refuses too many requests: {}. The longest has {} tokens; the KV cache of {} holds {} tokens",
      roomy->why, longest, name_of(asked, *roomy), roomy->kv_tokens));
}

void too_many(const Asked& asked, const Plan& plan, std::vector<std::string>& out) {
  const Configuration* nearest = best(
      plan, [](const Configuration& each) { return each.outcome == Outcome::kTooMany && each.with_most; },
      [](const Configuration& each) { return -each.with_most->good_share; });
  if (nearest == nullptr) return;
  const Judged& judged = *nearest->with_most;
  out.push_back(fmt::format(
      "With at most {} {} of the requests are within every limit at best, as predicted; {} are asked for. Nearest "
      "is {}, as many replicas as that allows: its {} is {} times the limit",
      asked.most_devices == 1 ? "1 device" : fmt::format("{} devices", asked.most_devices),
      human_percent(judged.good_share), human_percent(asked.limits.share), name_of(asked, *nearest), judged.limit,
      base::three_digits(judged.of_slo)));
}

}  // namespace

std::vector<std::string> obstacles(const Asked& asked, const Plan& plan) {
  std::vector<std::string> out;
  const auto serves = [](const Configuration& each) { return each.meets.has_value(); };
  if (std::ranges::any_of(plan.configurations, serves)) return out;
  if (std::ranges::none_of(plan.configurations, fits)) return {no_room(asked, plan)};
  const Configuration* likely = best(
      plan, [](const Configuration& each) { return each.may.has_value(); },
      [](const Configuration& each) { return each.alone.of_slo * each.error.most; });
  if (likely != nullptr) {
    const double longest = likely->alone.of_slo * likely->error.most;
    out.push_back(fmt::format(
        "No configuration keeps the limits with steps as long as they may be. Nearest is {}: steps may take {} times "
        "the predicted time ({}){}",
        name_of(asked, *likely), base::three_digits(likely->error.most), likely->error.why,
        longest > 1 ? fmt::format(", and the {} of a request alone would then be {} of the limit", likely->alone.limit,
                                  human_percent(longest))
                    : ""));
    return out;
  }
  floors(asked, plan, out);
  refused(asked, plan, out);
  too_many(asked, plan, out);
  return out;
}

}  // namespace llmprof::predict::plan
