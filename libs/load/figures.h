#pragma once
// What a load says of a server: latencies, throughput, goodput, the steady part, and how well the client kept its
// schedule. Definitions are those of vLLM's bench serve and of aiperf, which name them differently:
//
//   ours   vLLM's   aiperf's              is
//   TTFT   -        time_to_first_token   sent to the first message with text
//   -      TTFT     -                     sent to the first message with a choice, empty or not
//   TPOT   TPOT     inter_token_latency   (last text - first text) / (output tokens - 1)
//   ITL    ITL      inter_chunk_latency   between two messages with text
//   E2E    E2EL     request_latency       sent to the last message with text; without streaming, to the answer's end
//
// Percentiles are numpy's, the standard deviation that of a population. Only finished requests have latencies.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "load/load.h"
#include "serving/metrics.h"

namespace llmprof::load {

// Of one request; without what it has not.
struct Latencies {
  std::optional<double> ttft_ns, ttft_any_ns, tpot_ns, e2e_ns;
  double queue_ns = 0;           // arrival to sent: in the client
  std::vector<double> itls_ns;
};
Latencies latencies_of(const RequestRecord& request);
// Within every limit, its time in the client's queue included.
bool is_good(const RequestRecord& request, const serving::Slo& slo);

struct LatencyRow {
  std::string span;  // whole, steady
  std::string metric, vllm, aiperf, definition;
  std::int64_t count = 0;
  double mean_ns = 0, std_ns = 0, p50_ns = 0, p90_ns = 0, p95_ns = 0, p99_ns = 0, most_ns = 0;
};

struct SpanRow {
  std::string span;
  double begin_ns = 0, duration_ns = 0;  // begin: since that of the load
  std::int64_t requests = 0, finished = 0, failed = 0;  // sent in it
  std::int64_t prompt_tokens = 0, output_tokens = 0;    // of those that finished
  double requests_per_s = 0, output_tokens_per_s = 0, total_tokens_per_s = 0;
  std::optional<double> goodput_per_s, good_share;  // share: of all requests, failed ones included
  double mean_concurrency = 0;
  std::int64_t most_concurrency = 0;
};

struct ClientRow {
  std::int64_t scheduled = 0;  // requests whose moment was kept or not; those that waited for the cap are not among them
  double lag_p50_ns = 0, lag_p99_ns = 0, lag_most_ns = 0;  // sent - scheduled
  double read_lag_p99_ns = 0, read_lag_most_ns = 0;        // bounds of how late answers were read
  std::int64_t capped = 0;                                 // waited for --max-outstanding
  double cap_wait_p50_ns = 0, cap_wait_p99_ns = 0, cap_wait_most_ns = 0;
  double cpu_share = 0, cpu_share_most = 0;  // of one core
  bool kept = true;
  std::string why;  // where it was not
};

struct StatusRow {
  std::string status;
  std::int64_t requests = 0;
  std::string example;  // the first error in words
};

struct CountedRow {
  std::string counted_by;
  std::int64_t requests = 0;
};

struct Figures {
  std::vector<SpanRow> spans;  // whole, and steady where there is one
  std::vector<LatencyRow> latency;
  std::vector<StatusRow> statuses;  // of all that are no warm-up
  std::vector<CountedRow> counted;
  ClientRow client;
  std::int64_t warm_up = 0, warm_up_failed = 0;
  double steady_level = 0;   // share of the peak
  std::string steady_why;  // where there is none
};

inline constexpr double kMostLagNs = 10e6, kMostCpuShare = 0.9;

// `steady_level`: of the highest concurrency. In an open loop that goes up and down by chance: there it is averaged over
// four times the mean answer, at most a fifth of the duration.
Figures figures_of(const LoadResult& result, const serving::Slo& slo, double steady_level);

struct Span {
  std::uint64_t begin_ns = 0, end_ns = 0;
};
// The longest in which concurrency stays at or above `level` of its peak, both averaged over hundredths of the duration,
// or over `window_ns` if that is more.
std::optional<Span> steady_span(const LoadResult& result, double level, double window_ns = 0);

}  // namespace llmprof::load
