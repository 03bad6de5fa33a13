#pragma once
// What an engine's memory goes to before the KV cache gets the rest: vLLM runs its largest batch once, looks at the
// peak, and divides what is left into blocks.

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/shard.h"

namespace llmprof::predict {

struct EngineSizes {
  std::int64_t max_batched_tokens = 2048;
  std::int64_t max_requests = 256;
  std::int64_t graphs = 0;  // CUDA graphs whose memory the engine sets aside beforehand; 0: it does not
};

// Of one rank.
struct MemoryNeeds {
  double weights_bytes = 0;
  double kv_bytes_per_token = 0;
  double activation_bytes = 0;  // at the peak of the engine's trial run
  double outside_bytes = 0;     // what libraries take beside the framework's allocator
  double graph_bytes = 0;
  std::vector<std::string> assumptions;
  double before_cache() const { return weights_bytes + activation_bytes + outside_bytes + graph_bytes; }
};

Result<MemoryNeeds> memory_needs(const model::Config& whole, const model::Parallel& parallel, const EngineSizes& sizes);

// What is left for keys and values of the part of a device that the engine may use (0.9); negative: it does not fit.
double kv_cache_bytes(const MemoryNeeds& needs, double device_bytes, double utilization);

}  // namespace llmprof::predict
