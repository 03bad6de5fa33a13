#pragma once
// The result as vLLM's `bench serve --save-result --save-detailed` writes it, by its definitions: lists in seconds,
// statistics in milliseconds. TTFT is that of the first message with a choice, ITL the gap of every further one, the
// clock of a request starts when it is sent.

#include <optional>
#include <string>

#include "base/json_fwd.h"
#include "load/document.h"

namespace llmprof::load {

struct VllmFacts {
  std::optional<double> rate;  // requests per second; none: all at once, or a closed loop ("inf")
  double burstiness = 1;       // shape of the gamma distribution of intervals; 1: Poisson
  std::int64_t wall_ns = 0;    // when the load began
};
base::Json vllm_json(const LoadResult& result, const About& about, const VllmFacts& facts);

}  // namespace llmprof::load
