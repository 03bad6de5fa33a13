#pragma once
// What an engine is asked for: requests with their arrival, lengths and shared prefixes, from a generator or a trace.
// The same seed gives the same workload on every machine with IEEE arithmetic.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace llmprof::serving {

struct Request {
  double arrival_ns = 0;  // ignored in a closed loop
  std::int32_t prompt_tokens = 0;
  std::int32_t output_tokens = 0;
  std::int32_t priority = 0;  // lower is served first; used by Policy::kPriority
  std::uint32_t id_count = 0;
  std::uint64_t id_begin = 0;  // in Workload::content_ids
};

struct Workload {
  std::vector<Request> requests;  // by arrival
  // Per request, the content of its prompt in pieces of content_tokens: equal ids at the same place are equal prompts
  // up to the end of that piece. What no id describes is shared with nobody.
  std::vector<std::uint64_t> content_ids;
  std::int64_t content_tokens = 16;
  bool ids_of_outputs = false;  // the ids go on behind the prompts: a live engine knows what it generated
  std::int64_t concurrency = 0;  // closed loop: a request is sent when one of so many ends; 0: by arrival
  std::string description;       // "300 requests, Poisson 10/s, ShareGPT-like lengths, seed 1"
};

enum class Arrivals : std::uint8_t {
  kPoisson,   // independent
  kGamma,     // intervals with the given coefficient of variation: above 1 in bursts
  kConstant,  // equal intervals
  kRamp,      // independent, the rate growing linearly from `rate` to `rate_end` over the requests' duration
};

enum class Lengths : std::uint8_t {
  kFixed,     // prompt and output
  kUniform,   // between the least and the most
  kShareGpt,  // lognormal, see kShareGptPrompt
};

struct Lognormal {
  double mean_log, sigma_log;
  std::int32_t least, most;
};
// Means of 161 prompt and 338 output tokens as in Kwon et al., "Efficient memory management for large language model
// serving with PagedAttention", SOSP 2023, figure 11 (recalled, not read again). The spreads are assumed: no published
// figure for them is known to us. A trace is better.
inline constexpr Lognormal kShareGptPrompt{4.361, 1.2, 4, 8192};
inline constexpr Lognormal kShareGptOutput{5.418, 0.9, 4, 8192};

struct WorkloadSpec {
  std::int64_t requests = 300;
  Arrivals arrivals = Arrivals::kPoisson;
  double rate = 1;      // requests per second
  double rate_end = 1;  // of a ramp
  double cv = 1;        // of kGamma
  std::int64_t concurrency = 0;
  Lengths lengths = Lengths::kFixed;
  std::int32_t prompt = 512, prompt_most = 512;  // fixed: the first; uniform: both
  std::int32_t output = 128, output_most = 128;
  std::int64_t prefixes = 0;         // different shared prefixes; 0: none
  std::int32_t prefix_tokens = 0;    // in front of every prompt
  std::int32_t priority_levels = 1;  // drawn equally often
  std::uint64_t seed = 1;
};

// Errors name the setting that makes no sense.
Result<Workload> make_workload(const WorkloadSpec& spec);

struct TraceOptions {
  std::int64_t content_tokens = 0;  // tokens of a hash id; 0: inferred (512 for Mooncake's own traces, 16 for vLLM's)
  double time_scale = 1;            // arrivals are this many times as far apart
  std::int64_t most_requests = 0;   // 0: all
};

// Mooncake's JSONL (importers::read_trace reads files): {"timestamp": ms, "input_length": n, "output_length": n, "hash_ids": […]} a
// line; "priority" is taken too. Arrivals count from the first request. Errors name the file and the line.
Result<Workload> parse_trace(std::string_view text, std::string_view where, const TraceOptions& options = {});

// Limits of what is read from files: beyond them a trace is an error, not a memory problem.
inline constexpr std::int64_t kMostRequests = 10'000'000;
inline constexpr std::int32_t kMostRequestTokens = 16 << 20;

}  // namespace llmprof::serving
