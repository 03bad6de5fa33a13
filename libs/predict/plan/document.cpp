#include "predict/plan/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/human.h"

namespace llmprof::predict::plan {
namespace {

constexpr double kNothingMeasured = 0.999;  // of the time

std::optional<double> finite(double value) { return std::isfinite(value) ? std::optional(value) : std::nullopt; }

// "41.2…82.4 ms": as predicted, and with all steps as long as they may be.
std::string both(double ns, double longest_ns) {
  const std::string from = base::human_ns(ns);
  if (!std::isfinite(longest_ns)) return from + "…-";
  const std::string to = base::human_ns(longest_ns);
  const std::size_t unit = from.rfind(' ');
  const bool same = unit != std::string::npos && to.ends_with(from.substr(unit));
  return fmt::format("{}…{}", same ? from.substr(0, unit) : from, to);
}

PlanRow row_of(const Asked& asked, const Configuration& each, const Load& load, bool meets) {
  const hw::DeviceAndPeaks& device = asked.devices[each.way.device];
  PlanRow row;
  row.device = device.device.name;
  row.short_name = device.spec == nullptr ? device.device.name : device.spec->short_names.front();
  row.dtype = each.dtype;
  row.tensor = each.way.tensor, row.expert = each.way.expert, row.replicas = load.replicas;
  row.devices = each.devices(load);
  row.max_num_seqs = each.way.max_num_seqs, row.max_num_batched_tokens = each.way.max_num_batched_tokens;
  row.meets = meets, row.front = load.front;
  row.cost_per_hour = price_of(asked, each, load);
  if (const auto joules = energy_per_token(asked, each, load)) row.energy_bound_j = *joules * 1000;
  const double rate = tokens_per_s(asked, load);
  if (row.cost_per_hour && rate > 0) row.cost_per_mtoken = *row.cost_per_hour / (rate * 3600) * 1e6;
  row.good_share = load.predicted.good_share, row.good_share_longest = load.longest.good_share;
  row.of_slo = load.predicted.of_slo, row.of_slo_longest = finite(load.longest.of_slo);
  row.limit = (meets ? load.longest : load.predicted).limit;
  row.ttft_ns = load.predicted.ttft_ns, row.tpot_ns = load.predicted.tpot_ns, row.e2e_ns = load.predicted.e2e_ns;
  row.ttft_longest_ns = finite(load.longest.ttft_ns), row.tpot_longest_ns = finite(load.longest.tpot_ns);
  row.e2e_longest_ns = finite(load.longest.e2e_ns);
  row.steady = load.steady;
  row.highest_rate = load.highest_rate, row.rate_may_be_higher = load.rate_may_be_higher;
  if (load.highest_rate) row.rate_text = (load.rate_may_be_higher ? "> " : "") + base::three_digits(*load.highest_rate);
  row.busy_share = load.busy_share, row.kv_peak_share = load.kv_peak_share;
  row.measured = each.stands_on.share(Basis::kMeasured), row.interpolated = each.stands_on.share(Basis::kInterpolated);
  row.extrapolated = each.stands_on.share(Basis::kExtrapolated), row.roof = each.stands_on.share(Basis::kRoof);
  row.assumed = each.stands_on.share(Basis::kAssumed);
  row.step_most = each.error.most;
  row.label = fmt::format("{} x {}", row.devices, row.short_name);
  row.split = row.tensor == 1  ? fmt::format("{} x 1", row.replicas)
              : row.expert > 1 ? fmt::format("{} x tp {} ep {}", row.replicas, row.tensor, row.expert)
                               : fmt::format("{} x tp {}", row.replicas, row.tensor);
  row.limits = fmt::format("{}/{}", row.max_num_seqs, row.max_num_batched_tokens);
  row.ttft_text = both(load.predicted.ttft_ns, load.longest.ttft_ns);
  row.e2e_text = both(load.predicted.e2e_ns, load.longest.e2e_ns);
  row.tpot_text = both(load.predicted.tpot_ns, load.longest.tpot_ns);
  const auto percent = [](double share) { return std::isfinite(share) ? fmt::format("{:.0f}", 100 * share) : "-"; };
  row.slo_text = fmt::format("{}…{}", percent(load.predicted.of_slo), percent(load.longest.of_slo));
  return row;
}

std::string_view outcome_word(Outcome outcome) {
  switch (outcome) {
    case Outcome::kServes:
      return "serves";
    case Outcome::kDoesNotFit:
      return "does not fit";
    case Outcome::kRefused:
      return "refuses";
    case Outcome::kTooSlow:
      return "too slow";
    case Outcome::kTooMany:
      return "too many devices";
  }
  return "";
}

LeftOutRow left_out_row(const Asked& asked, const Configuration& each) {
  LeftOutRow row;
  row.device = asked.devices[each.way.device].device.name, row.dtype = each.dtype;
  row.tensor = each.way.tensor, row.expert = each.way.expert;
  row.max_num_seqs = each.way.max_num_seqs, row.max_num_batched_tokens = each.way.max_num_batched_tokens;
  row.outcome = outcome_word(each.outcome), row.why = each.why;
  row.weights_bytes = each.memory.weights_bytes, row.granted_bytes = each.granted_bytes;
  if (each.outcome == Outcome::kDoesNotFit) return row;
  row.ttft_alone_ns = each.alone.ttft_ns, row.tpot_alone_ns = each.alone.tpot_ns;
  if (each.outcome == Outcome::kTooSlow) {
    row.why = fmt::format("a request alone: {} {:.0f} % of its limit", each.alone.limit, 100 * each.alone.of_slo);
  } else if (each.with_most) {
    row.why = fmt::format("with {} devices {} of the requests are within the limits",
                          asked.most_devices / each.way.tensor * each.way.tensor,
                          base::human_percent(each.with_most->good_share));
  }
  return row;
}

DeviceRow device_row(const Asked& asked, const hw::DeviceAndPeaks& device) {
  DeviceRow row;
  row.device = device.device.name;
  row.memory_bytes = static_cast<double>(device.device.memory_bytes);
  if (const auto bandwidth = hw::bandwidth_peak(device.peaks)) row.bandwidth = bandwidth->per_second;
  if (const hw::Figure* power = device.spec == nullptr ? nullptr : device.spec->figure("power")) {
    row.power_w = power->value;
    row.power_source = power->source + (power->verified() ? "" : " (not verified)");
  }
  if (const auto price = asked.prices.find(device.device.name); price != asked.prices.end()) row.price = price->second;
  row.link = default_link(device.spec).source;
  return row;
}

void count(const Plan& plan, SearchedRow& out) {
  out.configurations = static_cast<std::int64_t>(plan.configurations.size());
  out.simulated = plan.simulated, out.simulations = plan.simulations;
  for (const Configuration& each : plan.configurations) {
    out.do_not_fit += each.outcome == Outcome::kDoesNotFit ? 1 : 0;
    out.refused += each.outcome == Outcome::kRefused ? 1 : 0;
    out.too_slow += each.outcome == Outcome::kTooSlow ? 1 : 0;
    out.too_many_devices += each.outcome == Outcome::kTooMany ? 1 : 0;
    out.meet += each.meets ? 1 : 0;
    out.may_meet += !each.meets && each.may ? 1 : 0;
  }
}

std::vector<std::string> notes_of(const Asked& asked, const Plan& plan) {
  std::vector<std::string> notes;
  BasisTimes times;
  bool links = false;
  const Configuration* widest = nullptr;  // of those that serve
  for (const Configuration& each : plan.configurations) {
    times += each.stands_on;
    links |= each.way.tensor > 1;
    if ((each.meets || each.may) && (widest == nullptr || each.error.most > widest->error.most)) widest = &each;
  }
  if (times.total() > 0 && times.share(Basis::kRoof) + times.share(Basis::kAssumed) > kNothingMeasured)
    notes.emplace_back(
        "every time of an operator is the device's roof, the least it can be: none was measured (llmprof "
        "bench --for MODEL measures them, on the device)");
  if (widest != nullptr)
    notes.push_back(fmt::format("steps may take up to {} times the predicted time: {}",
                                base::three_digits(widest->error.most), widest->error.why));
  if (links)
    notes.emplace_back(
        "links between ranks are stated costs; where the catalogue has none, PCIe 4.0 x16 is "
        "assumed (--full lists them)");
  if (asked.stretch) {
    notes.emplace_back(
        "each replica is simulated alone, under the same arrivals as many times as far apart as there are replicas: "
        "what "
        "a router that picks at random leaves of Poisson arrivals; one that looks at the load does better");
  } else {
    notes.emplace_back(
        "requests go to the replica with the least load (4 x waiting + running), as vLLM's data parallel "
        "router does");
  }
  const auto hasty = [](const std::optional<Load>& load) { return load && load->front && !load->steady; };
  if (std::ranges::any_of(plan.configurations,
                          [&](const auto& each) { return hasty(each.meets) || hasty(each.may); })) {
    notes.push_back(
        fmt::format("{} requests arrive in less than four times what an answer takes: the load ends "
                    "before a growing queue would show, so more replicas may be needed (--requests)",
                    asked.workload.requests.size()));
  } else {
    const bool repeated = asked.stretch && asked.repeat;
    notes.push_back(
        fmt::format("judged by {} requests{}: a queue that grows slowly over a longer time is not seen (--requests)",
                    asked.workload.requests.size(),
                    repeated ? ", repeated where they arrive in less than four times what an answer takes" : ""));
  }
  notes.emplace_back(
      "KV blocks follow from the engine's rule for each device; 5 % fewer where steps are as long as they "
      "may be");
  notes.emplace_back(
      "energy: all devices at their power limit all the time, by the catalogue; hosts, switches and cooling "
      "are not in it");
  return notes;
}

}  // namespace

PlanDocument document_of(const Asked& asked, const Plan& plan) {
  PlanDocument out;
  out.model = asked.deployment.model, out.engine = plan.engine;
  out.workload = asked.workload.description;
  if (asked.rate > 0) out.rate = asked.rate;
  const serving::Slo& slo = asked.limits.slo;
  out.slo = {slo.ttft_ns, slo.tpot_ns, slo.e2e_ns, asked.limits.share};
  count(plan, out.searched);
  for (const Configuration& each : plan.configurations) {
    if (each.meets) out.configurations.push_back(row_of(asked, each, *each.meets, true));
    if (each.may) out.configurations.push_back(row_of(asked, each, *each.may, false));
    if (!each.meets && !each.may) out.left_out.push_back(left_out_row(asked, each));
  }
  std::stable_sort(out.configurations.begin(), out.configurations.end(), [](const PlanRow& a, const PlanRow& b) {
    const auto key = [](const PlanRow& row) {
      return std::tuple(Objectives::of(row.cost_per_hour), row.devices, Objectives::of(row.energy_bound_j), row.of_slo);
    };
    return key(a) < key(b);
  });
  for (const PlanRow& row : out.configurations) {
    if (row.front) (row.meets ? out.front : out.may).push_back(row);
  }
  for (const hw::DeviceAndPeaks& device : asked.devices) out.devices.push_back(device_row(asked, device));
  out.obstacles = obstacles(asked, plan);
  out.notes = notes_of(asked, plan);
  return out;
}

}  // namespace llmprof::predict::plan
