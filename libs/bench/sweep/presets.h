#pragma once
// The shapes that a model's operators have, as points: `llmprof bench --like llama3-8b`.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/sweep/sweep.h"
#include "model/config.h"
#include "trace/run.h"

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

// The matrix products that a recorded run made, as points, with their neighbours: `llmprof bench --from RUN`.

struct FromRunRequest {
  std::size_t top = 10;  // shapes, those with the most time first
  bool neighbours = true;
  std::vector<Type> types;  // empty: those the run used
  Variants variants;
  DeviceKind device = DeviceKind::kCpu;
};

// gemm points: each shape that was used, followed by the same with the rows around its own.
Result<std::vector<Point>> plan_from_run(const trace::Run& run, const FromRunRequest& request);

// Row counts around m: the power of two below and above it, and the multiple of 64 below and above it; m itself is not
// among them.
std::vector<std::int64_t> neighbours_of(std::int64_t m);

}  // namespace llmprof::bench
