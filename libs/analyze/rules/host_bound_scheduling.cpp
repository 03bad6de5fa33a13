// Time between steps while somebody waits for an answer: scheduling, preparing, handing out tokens.

#include "analyze/rules/tools.h"

namespace llmprof::analyze::host_bound_scheduling {
namespace {

constexpr double kLeastShare = 0.1;  // of the time with a request in the server

constexpr const char* kRows =
    "SELECT id, stage, begin_ns, begin_ns - lag(end_ns) OVER (PARTITION BY thread_id ORDER BY begin_ns) AS "
    "since_last_ns "
    "FROM step WHERE id IN (SELECT step_id FROM step_member) ORDER BY begin_ns";

}  // namespace

RuleResult check(const RuleInput& run) {
  const Requests& requests = run.summary.requests;
  const double whole = static_cast<double>(requests.engine_time.in_system_ns),
               between = static_cast<double>(requests.engine_time.between_ns);
  if (requests.steps == 0 || whole <= 0) return not_applicable("0 steps that say their members");
  const std::string numbers = fmt::format("{} of the {} with a request in the server lie between steps, {} after each",
                                          human_percent(between / whole), human_ns(whole),
                                          human_ns(between / static_cast<double>(requests.steps)));
  if (between < kLeastShare * whole) return not_found(numbers);
  Finding out;
  out.title =
      fmt::format("{} of the time with a request in the server lies between steps", human_percent(between / whole));
  out.text = numbers + ": the host schedules, prepares inputs and hands out tokens while nothing is computed.";
  out.lever = "scheduling the next step while this one runs";
  out.set_gain(between, whole,
               fmt::format("{} between {}", human_ns(between), count_of(static_cast<double>(requests.steps), "steps")));
  out.gain->of = "the time with a request in the server";
  out.add_fraction("requests.between_steps", "time without a step", between / whole,
                   human_ns(whole) + " with a request in the server", "measured", kRows);
  for (const RequestUse& use : requests.use) {
    if (use.work == "device idle")
      out.add_fraction("requests.idle", "idle time of the device inside steps", use.share,
                       human_ns(requests.steps_ns) + " of steps", "measured");
  }
  out.advice = {
      "Schedule ahead (vLLM: async_scheduling), and move tokenising, detokenising and HTTP to other processes.",
      "Look at what the engine's thread does there: record --stacks python."};
  out.next = "llmprof record --stacks python -o stacks -- SERVER";
  return {.findings = {std::move(out)}};
}

}  // namespace llmprof::analyze::host_bound_scheduling
