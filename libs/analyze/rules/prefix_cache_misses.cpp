// Prompts that begin like earlier ones, and are computed again.

#include "analyze/rules/tools.h"

namespace llmprof::analyze::prefix_cache_misses {
namespace {

constexpr double kLowRate = 0.2;     // of the prompt tokens
constexpr double kLost = 0.5;        // of the rate while blocks are free
constexpr std::int64_t kEnough = 5;  // requests on either side

constexpr const char* kRows =
    "SELECT name, arrival_ns, prompt_tokens, cached_tokens FROM request WHERE cached_tokens IS NOT NULL ORDER BY "
    "arrival_ns";

double rate(std::int64_t cached, std::int64_t prompt) {
  return prompt > 0 ? static_cast<double>(cached) / static_cast<double>(prompt) : 0;
}

}  // namespace

RuleResult check(const RuleInput& run) {
  const Requests& requests = run.summary.requests;
  if (!requests.cached_share)
    return not_applicable("0 requests of an engine with a prefix cache that says what it had");
  const EngineTime& time = requests.engine_time;
  const double full = rate(time.full_cached, time.full_prompt), free = rate(time.free_cached, time.free_prompt);
  const std::string numbers = fmt::format("the prefix cache had {} of the {} prompt tokens",
                                          human_percent(*requests.cached_share), requests.prompt_tokens);
  const bool lost = time.full_requests >= kEnough && time.free_requests >= kEnough && free > 0 && full < kLost * free;
  if (!lost && *requests.cached_share >= kLowRate) return not_found(numbers);
  Finding out;
  out.add_fraction("requests.cached", "prompt tokens found in the prefix cache", requests.cached_share,
                   fmt::format("{} prompt tokens", requests.prompt_tokens), "counted", kRows);
  if (!lost) {
    out.verdict = Verdict::kInconclusive;
    out.title = fmt::format("The prefix cache had {} of the prompt tokens; whether prompts begin alike is not recorded",
                            human_percent(*requests.cached_share));
    out.text = numbers + ". If prompts share a system prompt or a conversation, it should have had more.";
    out.next = "look at the prompts: what they have in common must be at their begin, and must not change";
    return {.findings = {std::move(out)}};
  }
  out.title = fmt::format("With its blocks in use the prefix cache finds {} of the prompts, else {}",
                          human_percent(full), human_percent(free));
  out.text = fmt::format(
      "{} were scheduled with 95 % or more of the KV cache in use: blocks of earlier prompts had been taken for "
      "others.",
      count_of(static_cast<double>(time.full_requests), "requests"));
  out.add_fraction("requests.cached_full", "found with 95 % of the blocks in use or more", full,
                   fmt::format("{} prompt tokens", time.full_prompt), "counted", kRows);
  out.add_fraction("requests.cached_free", "found with fewer in use", free,
                   fmt::format("{} prompt tokens", time.free_prompt), "counted", kRows);
  double prompts = 0;
  for (const RequestUse& use : requests.use) prompts += static_cast<double>(use.prefill_ns);
  const std::int64_t computed = requests.prompt_tokens - requests.cached_tokens.value_or(0);
  if (computed > 0 && requests.steps_ns > 0) {
    const double tokens = (free - full) * static_cast<double>(time.full_prompt);
    out.set_gain(std::min(prompts, prompts * tokens / static_cast<double>(computed)),
                 static_cast<double>(requests.steps_ns),
                 fmt::format("{:.0f} tokens more would be found, of {} that are computed in {}", tokens, computed,
                             human_ns(prompts)));
    out.gain->of = "the time of steps";
  }
  out.advice = {"Give the KV cache more blocks, or send prompts that begin alike to the same replica.",
                "Keep prefixes outside the device's memory (a second tier of the cache), if the engine can."};
  out.next = "llmprof diff RUN CHANGED_RUN";
  return {.findings = {std::move(out)}};
}

}  // namespace llmprof::analyze::prefix_cache_misses
