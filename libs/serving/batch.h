#pragma once
// One step of an inference engine: what its batch asks of the model. A scheduler makes it; what it takes,
// operator tables say (libs/predict), or the engine of libs/workload, which runs it.

#include <cstdint>
#include <vector>

namespace llmprof::serving {

// A request's part of a step that computes more than its next token: a prompt, a piece of one, or what a preempted
// request has to compute again.
struct Chunk {
  std::int64_t tokens = 0;    // new ones
  std::int64_t computed = 0;  // tokens before them, whose keys and values are in the cache
};

// How the kernels of a step are launched.
enum class Launch : std::uint8_t {
  kEager,      // one by one
  kPiecewise,  // CUDA graphs between the attentions
  kGraph,      // one CUDA graph
};

struct Batch {
  std::vector<Chunk> chunks;
  std::vector<std::int64_t> contexts;  // one per decoding request: tokens its new token attends to, itself included
  std::int64_t sampled = 0;            // requests that get a token from this step
  std::int64_t padded_tokens = 0;      // rows of the products: graphs have fixed sizes; tokens() where nothing pads
  std::int64_t new_requests = 0;       // scheduled for the first time: the host has to prepare them
  Launch launch = Launch::kEager;

  std::int64_t chunk_tokens() const {
    std::int64_t sum = 0;
    for (const Chunk& chunk : chunks) sum += chunk.tokens;
    return sum;
  }
  std::int64_t tokens() const { return chunk_tokens() + static_cast<std::int64_t>(contexts.size()); }
  std::int64_t requests() const { return static_cast<std::int64_t>(chunks.size() + contexts.size()); }
};

struct StepTime {
  double device_ns = 0;
  double host_ns = 0;  // scheduling, preparing inputs, handing out tokens: hidden where the engine schedules ahead
};

// What a step takes. Called for every step of a simulation, from one thread.
class StepCost {
 public:
  virtual ~StepCost() = default;
  virtual StepTime of(const Batch& batch) = 0;
};

}  // namespace llmprof::serving
