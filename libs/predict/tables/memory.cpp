#include "predict/tables/memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/human.h"
#include "model/memory.h"

namespace llmprof::predict {
namespace {

// Logits of the trial run's sampler, as PyTorch chooses by top-k and top-p: float32 copy, sorted values, int64 places,
// and the sort's own buffers for values and places. Counted from memory of its code, not measured.
constexpr double kSamplerBytesPerLogit = 4 + 4 + 8 + 12;
// Recalled of vLLM's start-up logs ("non_torch_memory takes 0.09GiB"; graphs of an 8B model 0.3 to 0.6 GiB).
constexpr double kOutsideBytes = 0.09 * (1 << 30);
constexpr double kGraphBytes = 8e6;

}  // namespace

Result<MemoryNeeds> memory_needs(const model::Config& whole, const model::Parallel& parallel,
                                 const EngineSizes& sizes) {
  LLMPROF_LET(const model::Config shard, model::shard(whole, parallel, {}));
  const model::Graph graph(shard);
  MemoryNeeds needs;
  needs.weights_bytes = model::weights_bytes(graph);
  needs.kv_bytes_per_token = model::kv_bytes_per_token(graph);
  const auto tokens = std::max<std::int64_t>(1, sizes.max_batched_tokens);
  const double layer_bytes = model::activation_bytes(graph, model::prefill(1, tokens));
  // The residual stream and the last layer's result are still there while tokens are chosen. Every rank chooses among
  // the whole vocabulary.
  const double rows_bytes = 2.0 * static_cast<double>(tokens * whole.hidden) * whole.activation.bytes;
  const double logits =
      static_cast<double>(std::max<std::int64_t>(1, sizes.max_requests)) * static_cast<double>(whole.vocab);
  const double sampler_bytes = rows_bytes + logits * (whole.activation.bytes + kSamplerBytesPerLogit);
  needs.activation_bytes = std::max(layer_bytes, sampler_bytes);
  needs.outside_bytes = kOutsideBytes;
  needs.graph_bytes = kGraphBytes * static_cast<double>(std::max<std::int64_t>(0, sizes.graphs));
  needs.assumptions = {
      fmt::format("activations: {} of {}", base::human_bytes(needs.activation_bytes),
                  sampler_bytes > layer_bytes ? fmt::format("the sampler with {} requests", sizes.max_requests)
                                              : fmt::format("a layer with {} tokens", tokens)),
      fmt::format("beside the framework's allocator: {} (assumed)", base::human_bytes(kOutsideBytes)),
  };
  if (needs.graph_bytes > 0) {
    needs.assumptions.push_back(fmt::format("CUDA graphs: {} each (assumed)", base::human_bytes(kGraphBytes)));
  }
  return needs;
}

double kv_cache_bytes(const MemoryNeeds& needs, double device_bytes, double utilization) {
  return device_bytes * utilization - needs.before_cache();
}

}  // namespace llmprof::predict
