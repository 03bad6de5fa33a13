#pragma once
// The shapes that a model's operators have, as points: `llmprof bench --like llama3-8b`.

#include <cstdint>
#include <string>
#include <vector>

#include "bench/sweep.h"
#include "model/config.h"

namespace llmprof::bench {

struct LikeRequest {
  std::vector<std::string> operators;  // only these; empty: all that the model has
  std::vector<std::int64_t> batches;   // sequences together
  std::vector<std::int64_t> seqs;      // tokens of a prompt: a prefill of each batch
  std::vector<std::int64_t> contexts;  // tokens in the cache, the new one included: a decode step of each batch
  std::vector<Type> types;             // empty: the model's own on a GPU, the operators' own on a CPU
  Variants variants;
  DeviceKind device = DeviceKind::kCpu;
};

struct LikePlan {
  std::vector<Point> points;          // equal shapes once, in the model's order, with the names of the model's parts
  std::vector<std::string> left_out;  // parts that no operator stands for, and why
};
Result<LikePlan> plan_like(const model::Config& config, const LikeRequest& request);

}  // namespace llmprof::bench
