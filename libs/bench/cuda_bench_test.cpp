#include "bench/cuda_bench.h"

#include <gtest/gtest.h>

#include <limits>

#include "bench/bench_plan.h"
#include "bench/cuda/context.h"
#include "bench/operators.h"

namespace llmprof::bench {
namespace {

bool has_gpu() {
  const Result<int> count = cuda::Context::device_count();
  return count && *count > 0;
}

Problem rows(std::int64_t seq, std::int64_t hidden, Type type = Type::kBfloat16) {
  return {.op = "residual_add", .type = type, .axes = {{"batch", 1}, {"seq", seq}, {"hidden", hidden}}};
}

const std::function<bool()> kGoOn = [] { return true; };

TEST(OpenBench, DevicesByName) {
  for (const char* name : {"cuda:", "cuda:x", "cuda:-1", "cuda:99999999999", "gpu!", "tpu"}) {
    const auto bench = open_bench(name, {});
    ASSERT_FALSE(bench) << name;
    EXPECT_EQ(bench.error().code, ErrorCode::kUsage) << name;
  }
}

TEST(OpenBench, WithoutAGpuSaysSo) {
  if (has_gpu()) GTEST_SKIP() << "this machine has one";
  const auto bench = open_bench("cuda:0", {});
  ASSERT_FALSE(bench);
  EXPECT_EQ(bench.error().code, ErrorCode::kUnsupported);
  EXPECT_FALSE(bench.error().message.empty());
}

TEST(Implementations, InOrderOrByName) {
  constexpr CudaImplementation kTwo[] = {{"cublaslt", nullptr}, {"kernel", nullptr}};
  Operator op;
  op.name = "gemm";
  EXPECT_EQ(wanted_implementations(op, "").error().message, "gemm has no GPU implementation");
  op.cuda = kTwo;
  EXPECT_EQ(wanted_implementations(op, "")->size(), 2u);
  ASSERT_EQ(wanted_implementations(op, "kernel")->size(), 1u);
  EXPECT_EQ(wanted_implementations(op, "kernel")->front()->name, "kernel");
  EXPECT_EQ(wanted_implementations(op, "x").error().message,
            "gemm has no implementation x on a GPU: it has cublaslt, kernel");
}

TEST(CudaBench, MeasuresColdAndHot) {
  if (!has_gpu()) GTEST_SKIP() << "needs a GPU";
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
  if (!has_gpu()) GTEST_SKIP() << "needs a GPU";
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
  if (!has_gpu()) GTEST_SKIP() << "needs a GPU";
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
