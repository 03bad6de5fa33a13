// Rows that an engine adds to its steps so that they fit a captured size.

#include "analyze/rules/tools.h"

namespace llmprof::analyze::step_padding {
namespace {

constexpr double kLeastPadding = 0.1;  // of the rows

constexpr const char* kRows =
    "SELECT step_id, sum(tokens) FILTER (request_id IS NULL) AS padding, sum(tokens) AS all_rows FROM step_member "
    "GROUP BY "
    "step_id ORDER BY padding DESC";

}  // namespace

RuleResult check(const RuleInput& run) {
  const Requests& requests = run.summary.requests;
  if (!requests.padding_share || requests.steps_ns <= 0) return not_applicable("0 steps that say their members");
  const double share = *requests.padding_share, steps = static_cast<double>(requests.steps_ns);
  double cost = 0;
  for (const RequestUse& use : requests.use)
    cost += use.rule == "by new tokens" ? static_cast<double>(use.engine_ns) : 0;
  const std::string numbers =
      fmt::format("{} of the rows of {} are padding, {} of their time", human_percent(share),
                  count_of(static_cast<double>(requests.steps), "steps"), human_percent(cost / steps));
  if (share < kLeastPadding) return not_found(numbers);
  Finding out;
  out.title = fmt::format("{} of the rows that steps compute are padding", human_percent(share));
  out.text = numbers + ".";
  out.set_gain(cost, steps, "the padding's part of what is divided by tokens");
  out.gain->of = "the time of steps";
  out.add_fraction("requests.padding", "rows that belong to no request", share, "all rows of steps", "counted", kRows);
  out.advice = {
      "Capture graphs for more sizes (vLLM: cudagraph_capture_sizes), or admit requests up to a captured size."};
  out.next = "llmprof diff RUN CHANGED_RUN";
  return {.findings = {std::move(out)}};
}

}  // namespace llmprof::analyze::step_padding
