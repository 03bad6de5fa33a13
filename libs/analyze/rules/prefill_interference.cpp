// Tokens that wait for the prefill of other requests.

#include <fmt/format.h>

#include "analyze/rules/wording.h"
#include "base/human.h"

namespace llmprof::analyze {
namespace prefill_interference {
namespace {

constexpr std::int64_t kLeastInterrupted = 3;
constexpr double kLeastExtra = 0.03;  // of the time of all intervals
constexpr double kLeastTimes = 1.5;   // interrupted to other intervals

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
      seen.interrupted == 0
          ? ""
          : fmt::format(", {} at the median", base::human_ns(static_cast<double>(seen.interrupted_p50_ns))),
      base::human_ns(clean));
  if (seen.interrupted < kLeastInterrupted || extra < kLeastExtra * all ||
      static_cast<double>(seen.interrupted_p50_ns) < kLeastTimes * clean)
    return not_found(numbers);
  Finding out{.rule = "prefill_interference", .stage = "decode"};
  out.title =
      fmt::format("{} of the time between tokens is prefill of other requests", base::human_percent(extra / all));
  out.text = numbers + ".";
  const std::string rows =
      "SELECT id, thread_id, stage, begin_ns, end_ns, batch, tokens, context FROM step WHERE stage IN ('prefill', "
      "'mixed', 'decode') ORDER BY thread_id, begin_ns";
  out.evidence.push_back(fraction("decode.interrupted", "times between tokens with a prefill in or beside them",
                                  static_cast<double>(seen.interrupted) / static_cast<double>(seen.intervals),
                                  fmt::format("{} times between tokens", seen.intervals), "measured", rows));
  out.evidence.push_back(
      time_of("decode.clean_interval_p50", "median time between tokens without one", clean, "measured", rows));
  out.evidence.push_back(time_of("decode.interrupted_interval_p50", "median time between tokens with one",
                                 static_cast<double>(seen.interrupted_p50_ns), "measured", rows));
  out.evidence.push_back(
      time_of("decode.interval_p99", "99 % of all are shorter", static_cast<double>(seen.p99_ns), "measured", rows));
  set_gain(out, extra, all,
           fmt::format("what {} interrupted times took above the median of the others, {}: {} of {}", seen.interrupted,
                       base::human_ns(clean), base::human_ns(extra), base::human_ns(all)));
  out.advice = {
      "Cut prefills into chunks that fit beside decode (chunked prefill, a smaller max_num_batched_tokens): the same "
      "work, shorter pauses.",
      "Serve prefill and decode by different GPUs, where the p99 of the time between tokens matters."};
  out.next = "llmprof diff RUN CHUNKED_RUN";
  return {.findings = {std::move(out)}};
}

}  // namespace
}  // namespace prefill_interference

extern const Rule kPrefillInterference;
const Rule kPrefillInterference = {
    .name = "prefill_interference",
    .title = "Tokens that wait for the prefill of other requests",
    .meaning =
        "Compares times between tokens (end to end of successive decode or mixed steps of a thread) with a prefill "
        "between or beside them, or in a mixed "
        "step, with the others. A thread that begins anew with shorter sequences is left out. Found where 3 or more "
        "are interrupted, take 1.5 times the "
        "median of the others or more, and the extra time is 3 % of all. Gain, at most: the extra time.",
    .check = prefill_interference::check,
    .stages = "decode"};

}  // namespace llmprof::analyze
