// Requests that wait although a step has tokens and places left: the KV cache has no blocks for them.

#include "analyze/rules/tools.h"

namespace llmprof::analyze::kv_pressure {
namespace {

constexpr double kLeastShare = 0.05;  // of the steps' time

constexpr const char* kRows =
    "SELECT ts_ns, tokens AS blocks_used, context AS blocks FROM request_event WHERE event = 'blocks' ORDER BY ts_ns";

void add_gain(const Requests& requests, Finding& out) {
  const std::int64_t all = requests.slow ? requests.slow->all_ns : 0;
  if (requests.replay && requests.replay->reproduces) {
    for (const ReplayChange& change : requests.replay->changes) {
      if (!change.change.starts_with("num_gpu_blocks") || change.ttft_p99_saved <= 0) continue;
      const double p99 = static_cast<double>(requests.slow->p99_ns);
      out.set_gain(change.ttft_p99_saved * p99, p99, change.change + ", simulated", false);
      out.gain->of = "p99 TTFT", out.gain->latency = true;
      return;
    }
  }
  if (all <= 0) return;
  for (const TtftPart& part : requests.slow->parts) {
    if (part.part != "queued for KV blocks" || part.all_ns <= 0) continue;
    out.set_gain(static_cast<double>(part.all_ns), static_cast<double>(all),
                 "all that requests were queued for blocks");
    out.gain->of = "the TTFT of all requests, added up", out.gain->latency = true;
  }
}

}  // namespace

RuleResult check(const RuleInput& run) {
  const Requests& requests = run.summary.requests;
  if (!requests.kv_peak_share || requests.steps_ns <= 0)
    return not_applicable("0 steps that say their members and the blocks of the KV cache");
  const double steps = static_cast<double>(requests.steps_ns),
               waiting = static_cast<double>(requests.engine_time.waiting_blocks_ns);
  const std::string numbers = fmt::format(
      "requests wait for blocks in {} of the time of steps; at most {} of the blocks are in use, {} in the mean",
      human_percent(waiting / steps), human_percent(*requests.kv_peak_share),
      human_percent(requests.kv_mean_share.value_or(0)));
  if (waiting < kLeastShare * steps) return not_found(numbers);
  Finding out;
  out.title = fmt::format("Requests wait for blocks of the KV cache in {} of the time of steps",
                          human_percent(waiting / steps));
  out.text = numbers + ".";
  out.lever = "a larger KV cache";
  add_gain(requests, out);
  out.add_fraction("requests.waiting_blocks", "steps that have no blocks for the first who waits", waiting / steps,
                   human_ns(steps) + " of steps", "measured", kRows);
  out.add_fraction("requests.kv_peak", "blocks in use at most", requests.kv_peak_share, "the blocks of the KV cache",
                   "counted", kRows);
  out.add_number("requests.preemptions", "requests that lost their cache",
                 requests.preemptions ? std::optional(static_cast<double>(*requests.preemptions)) : std::nullopt, "",
                 "counted", "", "the engine does not mark them");
  out.advice = {
      "Leave more memory to the cache (gpu_memory_utilization, a narrower type of the weights), or store it in 8 bits.",
      "Divide the model over more devices, or send fewer requests to this one."};
  out.next = "llmprof diff RUN CHANGED_RUN";
  return {.findings = {std::move(out)}};
}

}  // namespace llmprof::analyze::kv_pressure
