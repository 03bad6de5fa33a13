// Tokens that preempted requests compute a second time.

#include "analyze/rules/tools.h"

namespace llmprof::analyze::preemption {
namespace {

constexpr double kLeastShare = 0.01;  // of the steps' time

constexpr const char* kRows =
    "SELECT e.ts_ns, e.event, q.name FROM request_event AS e JOIN request AS q ON q.id = e.request_id WHERE e.event IN "
    "('preempted', 'scheduled') AND q.preemptions > 0 ORDER BY q.id, e.ts_ns";

}  // namespace

RuleResult check(const RuleInput& run) {
  const Requests& requests = run.summary.requests;
  if (!requests.preemptions || requests.steps_ns <= 0)
    return not_applicable("0 steps that say their members, of an engine that marks preemptions");
  const double steps = static_cast<double>(requests.steps_ns),
               again = static_cast<double>(requests.recomputed_ns.value_or(0)),
               tokens = static_cast<double>(requests.recomputed_tokens.value_or(0));
  const std::string numbers =
      fmt::format("{}: {} computed again in {}, {} of the time of steps; {} out of the batch, added up",
                  count_of(static_cast<double>(*requests.preemptions), "preemptions"), count_of(tokens, "tokens"),
                  human_ns(again), human_percent(again / steps), human_ns(requests.preempted_ns.value_or(0)));
  if (again < kLeastShare * steps) return not_found(numbers);
  Finding out;
  out.title = fmt::format("{} of the time of steps computes again what preempted requests had lost",
                          human_percent(again / steps));
  out.text = numbers + ".";
  out.lever = "a KV cache that holds the requests that run";
  out.set_gain(again, steps, fmt::format("{} for {}", human_ns(again), count_of(tokens, "tokens")));
  out.gain->of = "the time of steps";
  out.add_number("requests.preemptions", "times that a request lost its KV cache",
                 static_cast<double>(*requests.preemptions), "", "counted", kRows);
  out.add_fraction("requests.recomputed", "time of tokens computed before", again / steps,
                   human_ns(steps) + " of steps", "measured");
  out.add_number("requests.recomputed_tokens", "tokens computed before", tokens, "", "counted");
  out.add_time("requests.preempted", "preempted until in a step again, added up",
               static_cast<double>(requests.preempted_ns.value_or(0)), "measured", kRows);
  out.advice = {"Run fewer requests at once (max_num_seqs), or give the KV cache more blocks.",
                "Leave some blocks free at admission (watermark), so that those that run can grow."};
  out.next = "llmprof diff RUN CHANGED_RUN";
  return {.findings = {std::move(out)}};
}

}  // namespace llmprof::analyze::preemption
