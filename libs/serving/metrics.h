#pragma once
// What users of a server see, with the definitions of vLLM's benchmark_serving:
//   TTFT  first token - sent           TPOT  (last token - first token) / (output tokens - 1), per request
//   E2E   last token - sent            ITL   between two tokens of a request
// A request with one output token has no TPOT. Percentiles as numpy's.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "serving/quantiles.h"
#include "serving/simulate.h"

namespace llmprof::serving {

// From when on a request's latency counts.
enum class Since : std::uint8_t {
  kSent,    // as a client sees it
  kQueued,  // as the engine sees it: it takes requests between steps
};

// Limits that a good request keeps; those not set do not count.
struct Slo {
  std::optional<double> ttft_ns, tpot_ns, e2e_ns;
  bool any() const { return ttft_ns || tpot_ns || e2e_ns; }
};

struct Metrics {
  std::int64_t completed = 0, rejected = 0;
  Distribution ttft_ns, tpot_ns, itl_ns, e2e_ns;
  Distribution queue_ns;   // sent to first scheduled
  double duration_ns = 0;  // first sent to last token
  double requests_per_s = 0, output_tokens_per_s = 0, total_tokens_per_s = 0;
  std::optional<double> goodput_per_s;  // requests that keep the Slo
  std::optional<double> good_share;     // of all requests, rejected ones included
  std::int64_t preemptions = 0, preempted_requests = 0;
  double cached_share = 0;                      // of prompt tokens, found in the cache at the first admission
  double kv_peak_share = 0, kv_mean_share = 0;  // of usable blocks
  double device_busy_share = 0;                 // of replicas x duration
};

Metrics metrics_of(const Simulation& simulation, const Slo& slo = {}, std::int64_t replicas = 1,
                   Since since = Since::kSent);

// A request as a real engine served it. Times in s, all of the engine's monotonic clock but arrival_s.
struct MeasuredRequest {
  std::int64_t input_tokens = 0, output_tokens = 0;
  double arrival_s = 0;  // wall clock
  double queued_s = 0, scheduled_s = 0, first_token_s = 0, last_token_s = 0;
};

// JSONL (importers::read_measured reads files): request_id, input_toks, output_toks, arrival_time, queued_ts, scheduled_ts,
// first_token_ts, last_token_ts. In the order of the numbers that the request_ids end with, where these are 0 to n - 1;
// else in that of the lines.
Result<std::vector<MeasuredRequest>> parse_measured(std::string_view text, std::string_view where);

// A statistic of both; the error is of the measured one.
struct Compared {
  double measured = 0, predicted = 0;
  double error_percent() const { return measured == 0 ? 0 : 100 * (predicted / measured - 1); }
};
struct ComparedMetric {
  Compared mean, p50, p99;
  std::optional<double> mape_percent;  // mean of |error| per request; none of the queue, where many times are near 0
};
struct Comparison {
  std::int64_t requests = 0;  // served in both
  ComparedMetric ttft_ns, tpot_ns, e2e_ns, queue_ns;
  Compared duration_ns, output_tokens_per_s;
};

// Requests are compared one by one, so both must be of the same workload: other lengths are an error.
Result<Comparison> compare(const Simulation& simulation, const std::vector<MeasuredRequest>& measured,
                           Since since = Since::kQueued);

}  // namespace llmprof::serving
