#pragma once
// Several processes that run one model together, as a launcher such as torchrun starts them: each knows its number by
// the variable RANK. They exchange values through shared memory.

#include <cstdint>
#include <memory>
#include <optional>

#include "base/result.h"
#include "workload/config.h"
#include "workload/weights.h"

namespace llmprof::workload {

class Ranks {
 public:
  struct Shared;
  // The rank that this process is, if a launcher started it as one.
  static Result<std::optional<Ranks>> join();

  std::int64_t rank() const { return rank_; }
  std::int64_t count() const { return count_; }
  void wait();                                         // for all others
  void all_reduce(float* values, std::int64_t count);  // each becomes the sum over all ranks, the same on all of them

 private:
  std::shared_ptr<Shared> shared_;
  std::int64_t rank_ = 0, count_ = 1;
};

// Starts this program again, `count` times, as ranks; returns when all have ended: 0, or the first other status, upon
// which the rest are ended.
Result<int> launch_ranks(std::int64_t count);

// What tensor parallel ranks have of a model: heads and MLP width are split, logits by Model. Llama only, and only
// where all divide evenly.
Result<ModelConfig> part_of(const ModelConfig& whole, std::int64_t ranks);
Weights part_of(const Weights& whole, const ModelConfig& part, std::int64_t rank);

}  // namespace llmprof::workload
