#include "bench/bench.h"

#include <gtest/gtest.h>

#include "bench/cuda/context.h"
#include "bench/operator.h"

namespace llmprof::bench {
namespace {

bool has_gpu() {
  const Result<int> count = cuda::Context::device_count();
  return count && *count > 0;
}

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

}  // namespace
}  // namespace llmprof::bench
