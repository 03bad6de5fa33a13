#pragma once
// What a design occupies on one device, and what still fits beside it.

#include <optional>

#include "analyze/design/graphs.h"
#include "model/memory.h"

namespace llmprof::analyze::design {

struct Load {
  std::int64_t batch = 1, prompt = 1, context = 1;
};

// Bytes on the device of a pipeline that needs most.
struct Memory {
  double weights = 0;
  double kv_per_token = 0;  // of one sequence, while no window is full
  double kv = 0;            // of the batch at the context
  double activations = 0;   // of the larger of prefill and decode, at least
  double needed() const { return weights + kv + activations; }

  // Unknown without a device, or while its memory is unknown.
  std::optional<double> device;
  std::optional<double> left_for_kv;  // beside weights and activations; negative: they do not fit
  std::optional<bool> fits;
  // What would still fit with everything else as it is; 0: nothing. Bounded by the context the model was made for, if
  // it says one, and by kMost.
  std::optional<std::int64_t> longest_context, largest_batch;
  bool context_ends_with_model = false;  // memory would allow more than the model's positions
};

inline constexpr std::int64_t kMost = std::int64_t{1} << 31;

Memory memory_of(const Graphs& graphs, const Load& load, double device_bytes);
// Only the sum, for sweeps.
double needed_bytes(const Graphs& graphs, const Load& load);

// One device's share, the largest over the pipeline.
model::TrainingMemory training_memory_of(const Graphs& graphs, const Load& load, model::Recompute recompute);

}  // namespace llmprof::analyze::design
