// Decode delayed by prefill of other requests.

#include <map>

#include "analyze/rules/tools.h"

namespace llmprof::analyze::prefill_interference {
namespace {

constexpr std::int64_t kLeastInterrupted = 3;
constexpr double kLeastExtra = 0.03;  // of the time of all intervals
constexpr double kLeastTimes = 1.5;   // interrupted to other intervals

// Where steps say their members: what requests waited for whose prompts.
void add_requests(const Requests& requests, Finding& out) {
  if (requests.stalled_ns.value_or(0) <= 0) return;
  double decode_ns = 0;
  std::map<std::string, std::int64_t> by;
  for (const RequestFigures& each : requests.all) {
    decode_ns += static_cast<double>(each.decode_ns.value_or(0));
    if (!each.stalled_by.empty()) by[each.stalled_by] += each.stalled_ns.value_or(0);
  }
  const auto most = std::ranges::max_element(by, {}, [](const auto& each) { return each.second; });
  if (decode_ns <= 0 || most == by.end()) return;
  const std::string rows =
      "SELECT q.name, b.name AS stalled_by, sum(m.stalled_ns) AS stalled_ns FROM step_member AS m JOIN request AS q ON "
      "q.id = "
      "m.request_id JOIN request AS b ON b.id = m.stalled_by GROUP BY ALL ORDER BY stalled_ns DESC";
  out.text += fmt::format(" Requests waited {} for prompts in their steps, most for {}.",
                          human_ns(static_cast<double>(*requests.stalled_ns)), most->first);
  out.add_fraction("requests.stalled", "what decoding requests waited for prompts of others",
                   static_cast<double>(*requests.stalled_ns) / decode_ns,
                   human_ns(decode_ns) + " from first to last token, over requests", "measured", rows);
}

}  // namespace

RuleResult check(const RuleInput& run) {
  const InterferenceFacts& seen = run.facts.interference;
  if (seen.intervals == 0)
    return not_applicable(
        fmt::format("{} prefill or mixed steps, 0 pairs of steps that make tokens one after the other", seen.prefills));
  const double all = static_cast<double>(seen.all_ns), extra = static_cast<double>(seen.extra_ns),
               clean = static_cast<double>(seen.clean_p50_ns);
  const std::string numbers = fmt::format(
      "{} of {} times between tokens have the prefill of another request in them{}; the median of the others is {}",
      seen.interrupted, seen.intervals,
      seen.interrupted == 0 ? "" : fmt::format(", {} at the median", human_ns(seen.interrupted_p50_ns)),
      human_ns(clean));
  if (seen.clean_p50_ns <= 0)  // what tokens would take without prompts is not known then
    return not_found(fmt::format(
        "all of {} times between tokens have the prefill of another request in them, so none tells what it costs",
        seen.intervals));
  if (seen.interrupted < kLeastInterrupted || extra < kLeastExtra * all ||
      seen.interrupted_p50_ns < kLeastTimes * clean)
    return not_found(numbers);
  Finding out{.stage = "decode"};
  out.title = fmt::format("{} of the time between tokens is prefill of other requests", human_percent(extra / all));
  out.text = numbers + ".";
  const std::string rows =
      "SELECT id, thread_id, stage, begin_ns, end_ns, batch, tokens, context FROM step WHERE stage IN ('prefill', "
      "'mixed', 'decode') ORDER BY thread_id, begin_ns";
  out.add_fraction("decode.interrupted", "times between tokens with a prefill in or beside them",
                   ratio(seen.interrupted, seen.intervals), fmt::format("{} times between tokens", seen.intervals),
                   "measured", rows);
  out.add_time("decode.clean_interval_p50", "median time between tokens without one", clean, "measured", rows);
  out.add_time("decode.interrupted_interval_p50", "median time between tokens with one", seen.interrupted_p50_ns,
               "measured", rows);
  out.add_time("decode.interval_p99", "99 % of all are shorter", seen.p99_ns, "measured", rows);
  out.set_gain(extra, all,
               fmt::format("what {} interrupted times took above the median of the others, {}: {} of {}",
                           seen.interrupted, human_ns(clean), human_ns(extra), human_ns(all)));
  add_requests(run.summary.requests, out);
  out.advice = {
      "Cut prefills into chunks that fit beside decode (chunked prefill, a smaller max_num_batched_tokens): the same "
      "work, shorter pauses.",
      "Serve prefill and decode by different GPUs, where the p99 of the time between tokens matters."};
  out.next = "llmprof diff RUN CHUNKED_RUN";
  return {.findings = {std::move(out)}};
}

}  // namespace llmprof::analyze::prefill_interference
