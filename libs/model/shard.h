#pragma once
// One rank's part of a model that is spread over several devices: a config again, so every formula holds for it.

#include "model/model.h"

namespace llmprof::model {

struct Parallel {
  std::int64_t tensor = 1;                                  // heads, MLP width and vocabulary are split
  std::int64_t pipeline = 1;                                // layers are split
  std::int64_t expert = 1;                                  // routed experts are split
  std::int64_t ranks() const { return tensor * pipeline; }  // expert parallelism reuses the tensor ranks
};

struct Rank {
  std::int64_t tensor = 0, pipeline = 0, expert = 0;
};

// Key-value heads are copied where there are fewer of them than tensor ranks; norms, routers and the down-projections
// of latent attention are on every rank. Splits that do not divide evenly differ by one between ranks.
Result<Config> shard(const Config& config, const Parallel& parallel, const Rank& rank);

// Bytes this rank sends in one pass: two ring all-reduces of the hidden rows per layer (tensor), the hidden rows to the
// next stage (pipeline), and rows to experts elsewhere and back (expert).
double communication_bytes(const Config& whole, const Parallel& parallel, const Pass& pass);

}  // namespace llmprof::model
