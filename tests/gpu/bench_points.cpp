// Points as `llmprof bench` measures them: cold and hot, skipped with a reason, every operator in each of its types.
// Needs an NVIDIA GPU. Usage: build/tests/gpu_operators_test

#include <gtest/gtest.h>

#include <limits>

#include "bench/bench.h"
#include "bench/operator.h"

namespace llmprof::bench {
namespace {

Problem rows(std::int64_t seq, std::int64_t hidden, Type type = Type::kBfloat16) {
  return {.op = "residual_add", .type = type, .axes = {{"batch", 1}, {"seq", seq}, {"hidden", hidden}}};
}

const std::function<bool()> kGoOn = [] { return true; };

TEST(CudaBench, MeasuresColdAndHot) {
  for (const Cache cache : {Cache::kCold, Cache::kHot}) {
    BenchOptions options;
    options.cache = cache;
    const auto bench = open_bench("cuda", options);
    ASSERT_TRUE(bench) << bench.error().message;
    const PointResult result = (*bench)->run(rows(512, 4096), kGoOn);
    ASSERT_EQ(result.status, Status::kMeasured) << result.reason;
    EXPECT_EQ(result.implementation, "kernel");
    EXPECT_GT(result.measured.time.median, 0);
    EXPECT_EQ(result.buffer_sets > 1, cache == Cache::kCold);
    EXPECT_TRUE(result.error && *result.error < 1e-2);
    EXPECT_TRUE(result.graph_seconds);
  }
}

TEST(CudaBench, SkipsWithTheReason) {
  const auto bench = open_bench("", {});
  ASSERT_TRUE(bench) << bench.error().message;
  EXPECT_EQ((*bench)->device().kind, "gpu");
  const auto reason = [&](const Problem& problem) {
    const PointResult result = (*bench)->run(problem, kGoOn);
    EXPECT_EQ(result.status, Status::kSkipped) << result.reason;
    return result.reason;
  };
  constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();
  EXPECT_NE(reason(rows(kHuge, kHuge)).find("too large"), std::string::npos);
  EXPECT_NE(reason(rows(1ll << 20, 1ll << 18)).find("does not fit"), std::string::npos);
  EXPECT_NE(reason(rows(1, 16, Type::kInt8)).find("has no int8"), std::string::npos);
  EXPECT_EQ((*bench)->run(rows(1, 16), [] { return false; }).status, Status::kSkipped);
  EXPECT_EQ((*bench)->run(rows(1, 16), kGoOn).status, Status::kMeasured);
}

// Every operator in every type that it has, small: right, and timed.
TEST(CudaBench, EveryOperatorInEachType) {
  BenchOptions options;
  options.graph = false;
  options.measure = {.least_samples = 3, .warm_up_seconds = 0, .least_seconds = 0, .limit_seconds = 0.02};
  const auto bench = open_bench("cuda", options);
  ASSERT_TRUE(bench) << bench.error().message;
  for (const Operator* op : operators()) {
    for (const Type type : op->types) {
      const Result<Problem> problem = make_problem(*op, type, {});
      ASSERT_TRUE(problem) << op->name;
      const PointResult result = (*bench)->run(op->small(*problem), kGoOn);
      EXPECT_NE(result.status, Status::kFailed) << result.problem.key() << ": " << result.reason;
    }
  }
}

}  // namespace
}  // namespace llmprof::bench
