// Requests that wait long for their first step.

#include "analyze/rules/tools.h"

namespace llmprof::analyze::queueing {
namespace {

constexpr double kLeastShare = 0.5;  // of the TTFT of the slow requests
constexpr std::int64_t kLeastRequests = 5;
constexpr double kWorthSaying = 0.05;  // of p99 TTFT

constexpr const char* kRows =
    "SELECT name, source, prompt_tokens, arrival_ns, scheduled_ns - arrival_ns AS queue_ns, first_token_ns - "
    "arrival_ns "
    "AS ttft_ns FROM request WHERE first_token_ns IS NOT NULL AND scheduled_ns IS NOT NULL ORDER BY ttft_ns DESC";

std::int64_t queue_of(const SlowTtft& slow) {
  std::int64_t ns = 0;
  for (const TtftPart& part : slow.parts) ns += part.part.starts_with("queued") ? part.ns : 0;
  return ns;
}

const ReplayChange* best_setting(const Requests& requests) {
  if (!requests.replay || !requests.replay->reproduces) return nullptr;
  for (const ReplayChange& change : requests.replay->changes) {  // most saved first
    if (!change.more_devices && change.ttft_p99_saved >= kWorthSaying) return &change;
  }
  return nullptr;
}

void add_gain(const Requests& requests, double queue, Finding& out) {
  const double p99 = static_cast<double>(requests.slow->p99_ns);
  if (const ReplayChange* best = best_setting(requests)) {
    out.set_gain(best->ttft_p99_saved * p99, p99, requests.replay->sentence, false);
    out.lever = best->change;
    out.advice.push_back(
        fmt::format("Set {}: {} of p99 TTFT less{}, by a simulation whose p99 TTFT is {:+.0f} % off.", best->change,
                    human_percent(best->ttft_p99_saved),
                    best->tpot_p50_change ? fmt::format(", TPOT p50 {:+.0f} %", 100 * *best->tpot_p50_change) : "",
                    100 * requests.replay->back_test[1].error));
  } else {
    out.set_gain(queue * p99, p99, "without any queue");
  }
  out.gain->of = "p99 TTFT";
  out.gain->latency = true;
}

// More arrive than are served: how many times more, by the time in which they came and that in which they were done.
std::optional<double> overload(const Requests& requests) {
  const std::vector<RequestFigures>& all = requests.all;
  if (all.size() < 2 || !requests.requests_per_s || *requests.requests_per_s <= 0) return std::nullopt;
  const std::int64_t ns = all.back().arrival_ns - all.front().arrival_ns;
  if (ns <= 0) return std::nullopt;
  return static_cast<double>(std::ssize(all) - 1) / (static_cast<double>(ns) * 1e-9) / *requests.requests_per_s;
}

void add_overload(const Requests& requests, Finding& out) {
  constexpr double kTooMany = 1.2;
  if (const auto times = overload(requests); times && *times >= kTooMany)
    out.text += fmt::format(
        " Requests came {:.1f} times as fast as they were served, {}/s: the queue grows as long as they come.", *times,
        base::three_digits(*requests.requests_per_s));
}

// What a simulation that reproduces the run says comes first; without one, what such a queue calls for.
void add_advice(const Requests& requests, Finding& out) {
  if (requests.replay && requests.replay->reproduces) {
    if (best_setting(requests) == nullptr)
      out.advice.push_back(fmt::format("None of {} other settings of the scheduler that were simulated saves {} of it.",
                                       std::ranges::count(requests.replay->changes, false, &ReplayChange::more_devices),
                                       human_percent(kWorthSaying)));
    for (const ReplayChange& change : requests.replay->changes) {
      if (change.more_devices && change.ttft_p99_saved >= kWorthSaying)
        out.advice.push_back(
            fmt::format("With {}: {} of p99 TTFT less.", change.change, human_percent(change.ttft_p99_saved)));
    }
    return;
  }
  const auto most = std::ranges::max_element(requests.slow->parts, {}, &TtftPart::ns);
  if (most->part == "queued behind prompts") {
    out.advice.emplace_back(
        "Try a limit for long prompts (long_prefill_token_threshold), so that short ones start beside them; serve "
        "prompts that begin alike from the prefix cache.");
  } else if (most->part == "queued for KV blocks") {
    out.advice.emplace_back(
        "Give the KV cache more blocks: more memory for it, an 8-bit cache, fewer weights per device.");
  } else if (most->part == "queued for a place") {
    out.advice.emplace_back("Raise max_num_seqs, as far as the KV cache has blocks for them.");
  }
  out.advice.emplace_back("Send fewer requests to this server at once: another replica, or a limit in front of it.");
}

}  // namespace

RuleResult check(const RuleInput& run) {
  const Requests& requests = run.summary.requests;
  if (!requests.slow || requests.count < kLeastRequests)
    return not_applicable(fmt::format("{} requests, of which {} are needed with arrival, first step and first token",
                                      requests.slow ? requests.count : 0, kLeastRequests));
  const SlowTtft& slow = *requests.slow;
  const double total = static_cast<double>(slow.total_ns),
               queue = total > 0 ? static_cast<double>(queue_of(slow)) / total : 0;
  const std::string numbers =
      fmt::format("{} of the TTFT of the {} at or above its p99, {}, is the queue", human_percent(queue),
                  count_of(static_cast<double>(slow.requests), "requests"), human_ns(slow.p99_ns));
  if (queue < kLeastShare) return not_found(numbers);
  Finding out;
  out.title = slow.sentence;
  out.text = numbers + ".";
  add_gain(requests, queue, out);
  out.add_fraction("requests.queue_of_ttft", "between arrival and first step", queue,
                   human_ns(total) + " TTFT of the slow requests", "measured", kRows);
  out.add_time("requests.ttft_p99", "99 % of requests have their first token sooner", static_cast<double>(slow.p99_ns),
               "measured", kRows);
  for (const TtftPart& part : slow.parts) {
    if (part.ns > 0)
      out.add_fraction("requests.slow", part.part + ": " + part.meaning, part.share,
                       human_ns(total) + " TTFT of the slow requests", "measured");
  }
  if (requests.replay) {
    for (const ReplayStatistic& each : requests.replay->back_test)
      out.add_time("requests.replay", each.metric + ", simulated as it was", static_cast<double>(each.predicted_ns),
                   "predicted");
  }
  add_overload(requests, out);
  add_advice(requests, out);
  out.next = "llmprof report RUN requests";
  return {.findings = {std::move(out)}};
}

}  // namespace llmprof::analyze::queueing
