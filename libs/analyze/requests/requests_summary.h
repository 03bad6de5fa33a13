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

// What requests used, over those of the source that the figures are of.
struct RequestAmount {
  std::string metric, unit, definition;
  std::int64_t count = 0;
  double total = 0, mean = 0, p50 = 0, p90 = 0, p99 = 0, most = 0;
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
  std::int64_t process_id = 0;  // that of the steps it was part of; 0: unknown
  std::optional<std::int64_t> sent_ns, scheduled_ns, first_token_ns, last_token_ns, end_ns;
  std::int64_t prompt_tokens = 0, output_tokens = 0;
  std::optional<std::int64_t> cached_tokens, preemptions;
  // What steps did for it; 0 steps: none says it.
  std::int64_t steps = 0, time_ns = 0, prefill_time_ns = 0, device_ns = 0, idle_ns = 0;
  std::optional<std::int64_t> stalled_ns;
  std::optional<double> flops, bytes;
  std::string stalled_by;  // the request whose prompts held it up longest
  std::optional<double> energy_j;
  std::optional<std::int64_t> preempted_ns, recomputed_tokens, recomputed_ns;  // nullopt: it was never preempted
  std::optional<double> cost, cost_per_1k_tokens;                              // in the currency of the price
  // What its client saw of it; nullopt where no client tells of it, or less than the clocks can tell.
  std::optional<std::int64_t> client_queue_ns, before_ns, after_ns, client_ttft_ns;
  // Computed from these; nullopt where a moment is unknown.
  std::optional<std::int64_t> queue_ns, prefill_ns, decode_ns, ttft_ns, tpot_ns, e2e_ns;
};

// Money, where somebody gave a price.
struct RequestCost {
  double price_per_hour = 0;  // of a device
  std::int64_t devices = 0;
  double steps = 0, engine = 0;                   // of all steps; of it, what belongs to no request
  std::optional<double> per_1k_tokens;            // steps, per 1,000 output tokens
  std::optional<double> with_idle_per_1k_tokens;  // of the devices from first arrival to last end, whatever they did
};

// Between two moments of the same requests, one seen by the client, one by the server.
struct SideInterval {
  std::string interval, definition;
  std::int64_t count = 0;
  std::optional<std::int64_t> error_ns;                         // of the two clocks; nullopt: unknown
  std::optional<std::int64_t> p50_ns, p90_ns, p99_ns, most_ns;  // nullopt: no more than the error
  std::int64_t within_error = 0;                                // of count
};
struct OneSided {
  std::string name, source, status, error;
  std::int64_t arrival_ns = 0;
};
struct RequestSides {
  std::int64_t both = 0, only_client = 0, only_server = 0;
  std::int64_t impossible = 0;  // of both: seen by the server before it was sent, by more than the error
  std::optional<std::int64_t> clock_error_ns;
  std::vector<SideInterval> intervals;
  std::vector<OneSided> unmatched;
};

// What a time to first token is made of; the parts of all requests meant add up to their TTFT exactly.
struct TtftPart {
  std::string part, meaning;
  std::int64_t ns = 0;
  double share = 0;         // of the TTFT of the slow requests
  std::int64_t all_ns = 0;  // of all requests
};
struct TtftBlame {  // whose prompts they waited for
  std::int64_t id = 0;
  std::string name;
  std::int64_t prompt_tokens = 0, ns = 0;  // ns: of the slow requests' queueing, added up
};
struct SlowRequest {
  std::string name;
  std::int64_t ttft_ns = 0, queue_ns = 0;
  std::int64_t prefills_ns = 0, blocks_ns = 0, sequences_ns = 0, budget_ns = 0, step_ns = 0, between_ns = 0,
               other_ns = 0;
  std::int64_t own_ns = 0, shared_ns = 0, rest_ns = 0;
};
struct SlowTtft {
  std::int64_t p99_ns = 0, requests = 0;  // those at or above it
  std::int64_t total_ns = 0, all_ns = 0;  // their TTFT added up; that of all requests
  std::vector<TtftPart> parts;
  std::vector<TtftBlame> blamed;  // most first
  std::vector<SlowRequest> slowest;
  std::string rules, sentence;  // rules: the engine's, in words; "" unknown
};

// The time of the engine while requests waited or ran.
struct EngineTime {
  std::int64_t in_system_ns = 0;  // somebody waits or runs
  std::int64_t between_ns = 0;    // of it, between steps
  std::int64_t waiting_ns = 0;    // of the steps' time, with somebody waiting
  std::int64_t waiting_blocks_ns = 0, waiting_sequences_ns = 0,
               waiting_prefills_ns = 0;  // of it, by what held them back
  // Requests that found something in the prefix cache, where its blocks were (nearly) all in use and where not.
  std::int64_t full_requests = 0, full_prompt = 0, full_cached = 0;
  std::int64_t free_requests = 0, free_prompt = 0, free_cached = 0;
};

// The run once more, simulated: the engine's rules, the run's requests, its steps' times.
struct ReplayStatistic {
  std::string metric;  // "TTFT p99"
  std::int64_t measured_ns = 0, predicted_ns = 0;
  double error = 0;  // predicted / measured - 1
};
struct ReplayChange {
  std::string change;                              // "max_num_batched_tokens 4096 -> 2048"
  bool more_devices = false, beyond_seen = false;  // beyond_seen: with larger steps than any that was measured
  std::int64_t ttft_p50_ns = 0, ttft_p99_ns = 0;
  std::optional<std::int64_t> tpot_p50_ns;
  double ttft_p99_saved = 0;  // of the simulated run without it
  std::optional<double> tpot_p50_change;
};
struct Replay {
  std::string engine, workload;
  // A step's time: a constant, and what a new token, a pair of tokens and a sequence add; the host between two steps.
  double step_ns = 0, token_ns = 0, pair_ns = 0, sequence_ns = 0, between_ns = 0;
  std::int64_t fitted_steps = 0;
  std::optional<double> fit_error;  // the median of |predicted / measured - 1| of these steps
  std::vector<ReplayStatistic> back_test;
  bool reproduces = false;
  std::vector<ReplayChange> changes;  // only where it does; most saved first
  std::string sentence, why;          // why there are no changes
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
  std::vector<RequestAmount> amounts;
  // Steps that say their members; requests_ns + engine_ns = steps_ns exactly.
  std::int64_t steps = 0, steps_ns = 0, requests_ns = 0, engine_ns = 0;
  std::optional<double> engine_share, padding_share;  // of steps_ns; rows of padding, of all rows
  std::optional<std::int64_t> stalled_ns;             // over all decoding requests
  std::optional<std::int64_t> preempted_ns, recomputed_tokens, recomputed_ns, computed_tokens;
  std::vector<RequestUse> use;
  std::optional<double> energy_j, energy_engine_j, joules_per_1k_tokens;  // of these steps; per 1,000 output tokens
  std::string energy_why;                                                 // why it is unknown
  std::optional<double> kv_peak_share, kv_mean_share;                     // of the blocks of the KV cache
  std::optional<RequestCost> cost;
  std::optional<RequestSides> sides;  // client and server beside each other
  std::optional<SlowTtft> slow;
  EngineTime engine_time;
  std::optional<Replay> replay;
  std::vector<RequestFigures> all;  // of `source`, by arrival
};

}  // namespace llmprof::analyze
