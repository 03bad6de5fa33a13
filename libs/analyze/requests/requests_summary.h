#pragma once
// What a report says of the requests that a program served or sent. Rows and words: tables/requests.md.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace llmprof::analyze {

struct RequestLatency {  // over the requests of one source
  std::string source, metric, definition;
  std::int64_t count = 0;
  double mean_ns = 0;
  std::int64_t p50_ns = 0, p90_ns = 0, p99_ns = 0, most_ns = 0;
};

struct RequestUse {  // one kind of work over all steps that say their members
  std::string work, rule;
  std::int64_t requests_ns = 0, prefill_ns = 0, decode_ns = 0, engine_ns = 0;  // requests: prefill and decode
  double share = 0;                                                            // requests and engine, of all kinds
};

struct RequestFigures {
  std::int64_t id = 0;
  std::string name, source, status, error;
  std::int64_t arrival_ns = 0;
  bool arrival_seen = true, warm_up = false, placed = true;
  std::optional<std::int64_t> sent_ns, scheduled_ns, first_token_ns, last_token_ns, end_ns;
  std::int64_t prompt_tokens = 0, output_tokens = 0;
  std::optional<std::int64_t> cached_tokens, preemptions;
  // What steps did for it; 0 steps: none says it.
  std::int64_t steps = 0, time_ns = 0, prefill_time_ns = 0, device_ns = 0, idle_ns = 0;
  std::optional<std::int64_t> stalled_ns;
  std::optional<double> flops, bytes;
  std::string stalled_by;  // the request whose prompts held it up longest
  std::optional<double> energy_j;
  // Computed from these; nullopt where a moment is unknown.
  std::optional<std::int64_t> queue_ns, prefill_ns, decode_ns, ttft_ns, tpot_ns, e2e_ns;
};

struct Requests {
  std::int64_t count = 0, finished = 0, failed = 0, unfinished = 0, warm_up = 0;  // of `source`
  std::string source;  // the one that the figures are of: server, else client, else another
  std::int64_t prompt_tokens = 0, output_tokens = 0;
  std::optional<std::int64_t> cached_tokens, preemptions;
  std::optional<double> cached_share;  // of prompt_tokens
  std::int64_t duration_ns = 0;        // first arrival to last end
  std::optional<double> requests_per_s, output_tokens_per_s;
  std::vector<RequestLatency> latencies;
  // Steps that say their members; requests_ns + engine_ns = steps_ns exactly.
  std::int64_t steps = 0, steps_ns = 0, requests_ns = 0, engine_ns = 0;
  std::optional<double> engine_share, padding_share;  // of steps_ns; rows of padding, of all rows
  std::optional<std::int64_t> stalled_ns;             // over all decoding requests
  std::vector<RequestUse> use;
  std::optional<double> energy_j, energy_engine_j, joules_per_1k_tokens;  // of these steps; per 1,000 output tokens
  std::string energy_why;                                                 // why it is unknown
  std::optional<double> kv_peak_share, kv_mean_share;                     // of the blocks of the KV cache
  std::vector<RequestFigures> all;                                        // of `source`, by arrival
};

}  // namespace llmprof::analyze
