#include <gtest/gtest.h>

#include "bench/operator.h"
#include "bench/ops/testing.h"

namespace llmprof::bench {
namespace {

TEST(Embedding, LooksUpByHand) {
  // Ids 2, 0, 2 of a table whose rows are (1, 2), (3, 4), (5, 6).
  const auto tensors = run_reference("embedding", Type::kFloat32, {{"seq", 3}, {"vocab", 3}, {"hidden", 2}},
                                     {{2, 0, 2}, {1, 2, 3, 4, 5, 6}});
  EXPECT_EQ(tensors[2], (std::vector<double>{5, 6, 1, 2, 5, 6}));
}

TEST(Embedding, WorkByHand) {
  // 2 * 5 tokens, rows of 8 values of 2 bytes: 10 * 16 bytes read and written, and 10 ids of 4 bytes. The vocabulary
  // does not matter.
  const Axes axes{{"batch", 2}, {"seq", 5}, {"vocab", 1000}, {"hidden", 8}};
  const model::KernelWork work = work_of("embedding", Type::kBfloat16, axes);
  EXPECT_EQ(work.flops, 0);
  EXPECT_EQ(work.read_bytes, 200);
  EXPECT_EQ(work.write_bytes, 160);
}

TEST(Embedding, CpuEqualsTheReference) {
  EXPECT_EQ(cpu_error("embedding", Type::kFloat32, {{"batch", 3}, {"seq", 7}, {"vocab", 50}, {"hidden", 999}}), 0);
}

TEST(Embedding, RefusesWhatInt32CannotName) {
  const Operator& op = *find_operator("embedding");
  const Axes axes{{"vocab", std::int64_t{1} << 31}};
  const auto problem = make_problem(op, Type::kBfloat16, axes);
  ASSERT_FALSE(problem);
  EXPECT_EQ(problem.error().code, ErrorCode::kUsage);
  EXPECT_NE(problem.error().message.find("2147483648"), std::string::npos);
}

TEST(Embedding, RefusesSizesThatOverflow) {
  const Axes axes{{"batch", std::int64_t{1} << 40}, {"seq", std::int64_t{1} << 40}};
  EXPECT_FALSE(make_problem(*find_operator("embedding"), Type::kBfloat16, axes));
}

}  // namespace
}  // namespace llmprof::bench
