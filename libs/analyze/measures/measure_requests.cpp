// Measures of the requests that were served: of the source that the report's figures are of.

#include <algorithm>

#include "analyze/measures/measure_values.h"
#include "base/human.h"

namespace llmprof::analyze {

namespace {

using From = const MeasureFrom&;

template <std::int64_t RequestLatency::*kStatistic>
MeasureValue latency(From from, std::string_view metric) {
  const Requests& all = from.summary.requests;
  const auto found = std::ranges::find_if(
      all.latencies, [&](const RequestLatency& each) { return each.source == all.source && each.metric == metric; });
  if (found == all.latencies.end()) return {std::nullopt, "", "no request has both moments of it"};
  return MeasureValue::seconds((*found).*kStatistic);
}

constexpr auto p50 = latency<&RequestLatency::p50_ns>;
constexpr auto p90 = latency<&RequestLatency::p90_ns>;
constexpr auto p99 = latency<&RequestLatency::p99_ns>;

MeasureValue share(std::optional<double> value, std::string of, std::string why) {
  return value ? MeasureValue{*value, std::move(of), ""} : MeasureValue{std::nullopt, "", std::move(why)};
}

MeasureValue of_steps(From from, std::optional<double> value) {
  return share(value, base::human_ns(static_cast<double>(from.summary.requests.steps_ns)) + " of steps",
               "no step says which requests it worked for");
}

constexpr auto kLower = Better::kLower;
constexpr auto kHigher = Better::kHigher;
constexpr auto kNeither = Better::kNeither;

const MeasureRow kRows[] = {
    {{"count", "", "counted", kNeither, "requests, warm-up left out", "rows of table request of one source"},
     [](From from) { return MeasureValue::count(from.summary.requests.count); }},
    {{"failed", "", "measured", kLower, "requests that ended with an error or were aborted",
      "status is neither finished nor length"},
     [](From from) { return MeasureValue::count(from.summary.requests.failed); }},
    {{"ttft_p50", "s", "measured", kLower, "median time to first token", "arrival to first token"},
     [](From from) { return p50(from, "TTFT"); }},
    {{"ttft_p90", "s", "measured", kLower, "90th percentile of the time to first token", "arrival to first token"},
     [](From from) { return p90(from, "TTFT"); }},
    {{"ttft_p99", "s", "measured", kLower, "99th percentile of the time to first token", "arrival to first token"},
     [](From from) { return p99(from, "TTFT"); }},
    {{"tpot_p50", "s", "measured", kLower, "median time per output token",
      "(last token - first token) / (output tokens - 1)"},
     [](From from) { return p50(from, "TPOT"); }},
    {{"tpot_p90", "s", "measured", kLower, "90th percentile of the time per output token",
      "(last token - first token) / (output tokens - 1)"},
     [](From from) { return p90(from, "TPOT"); }},
    {{"tpot_p99", "s", "measured", kLower, "99th percentile of the time per output token",
      "(last token - first token) / (output tokens - 1)"},
     [](From from) { return p99(from, "TPOT"); }},
    {{"e2e_p50", "s", "measured", kLower, "median time of a request", "arrival to last token"},
     [](From from) { return p50(from, "E2E"); }},
    {{"e2e_p99", "s", "measured", kLower, "99th percentile of the time of a request", "arrival to last token"},
     [](From from) { return p99(from, "E2E"); }},
    {{"queue_p50", "s", "measured", kLower, "median time in the queue", "arrival to first step"},
     [](From from) { return p50(from, "queue"); }},
    {{"queue_p99", "s", "measured", kLower, "99th percentile of the time in the queue", "arrival to first step"},
     [](From from) { return p99(from, "queue"); }},
    {{"requests_per_s", "1/s", "measured", kHigher, "finished requests per second",
      "finished / (last end - first arrival)"},
     [](From from) { return known(from.summary.requests.requests_per_s, 1, "the requests took no time"); }},
    {{"output_tokens_per_s", "1/s", "measured", kHigher, "output tokens per second",
      "output tokens / (last end - first arrival)"},
     [](From from) { return known(from.summary.requests.output_tokens_per_s, 1, "the requests took no time"); }},
    {{"stalled", "s", "measured", kLower, "what decoding requests waited for prompts in their steps, over all of them",
      "step - median step without prompts of as many requests, added up over requests"},
     [](From from) {
       return known(from.summary.requests.stalled_ns, 1e-9, "no step is without prompts, or none says its members");
     }},
    {{"cached", "1", "measured", kHigher, "prompt tokens found in the prefix cache", "cached / prompt tokens"},
     [](From from) {
       return share(from.summary.requests.cached_share,
                    base::human_count(static_cast<double>(from.summary.requests.prompt_tokens)) + " prompt tokens",
                    "the engine does not say what its prefix cache had");
     }},
    {{"preemptions", "", "measured", kLower, "how often a request lost its KV cache", "marks"},
     [](From from) { return known(from.summary.requests.preemptions, 1, "the engine does not mark them"); }},
    {{"recomputed", "1", "measured", kLower, "step time for tokens computed again after preemptions",
      "recomputed time / time of steps"},
     [](From from) {
       const Requests& all = from.summary.requests;
       if (all.steps_ns <= 0 || !all.preemptions) return of_steps(from, std::nullopt);
       return of_steps(from, static_cast<double>(all.recomputed_ns.value_or(0)) / static_cast<double>(all.steps_ns));
     }},
    {{"padding", "1", "measured", kLower, "rows of padding", "padding / all rows of steps"},
     [](From from) {
       return share(from.summary.requests.padding_share, "all rows of steps",
                    "no step says which requests it worked for");
     }},
    {{"engine_share", "1", "measured", kLower, "time of steps that belongs to no request",
      "engine's time / time of steps"},
     [](From from) { return of_steps(from, from.summary.requests.engine_share); }},
    {{"kv_peak", "1", "measured", kNeither, "highest share of the KV cache in use", "blocks in use / blocks"},
     [](From from) {
       return share(from.summary.requests.kv_peak_share, "the blocks of the KV cache",
                    "the engine does not mark its blocks");
     }},
    {{"joules_per_1k_tokens", "J", "measured", kLower, "energy of steps per 1,000 output tokens",
      "energy of steps / output tokens x 1,000"},
     [](From from) {
       const Requests& all = from.summary.requests;
       return known(all.joules_per_1k_tokens, 1,
                    all.energy_why.empty() ? "the energy of these steps is unknown" : all.energy_why);
     }},
    {{"cost_per_1k_tokens", "", "measured", kLower,
      "cost of steps per 1,000 output tokens, in the currency of the price",
      "time of steps x devices x price / output tokens x 1,000"},
     [](From from) {
       const auto& cost = from.summary.requests.cost;
       return known(cost ? cost->per_1k_tokens : std::nullopt, 1, "no price was given (report --price)");
     }},
};

}  // namespace

std::span<const MeasureRow> request_measure_rows() { return kRows; }

}  // namespace llmprof::analyze
