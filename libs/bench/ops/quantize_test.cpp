#include <gtest/gtest.h>

#include "bench/operator.h"
#include "bench/ops/testing.h"

namespace llmprof::bench {
namespace {

constexpr int kInt8 = 0, kFloat8 = 1;

TEST(Quantize, Int8ByHand) {
  // The largest is 2.54: 127 of it, so a step is 0.02, and 0.1 is five of them.
  const auto tensors =
      run_reference("quantize", Type::kFloat32, {{"seq", 1}, {"hidden", 4}, {"group", 0}, {"format", kInt8}},
                    {{2.54, -2.54, 0.1, 0}});
  EXPECT_EQ(tensors[1], (std::vector<double>{127, -127, 5, 0}));
  EXPECT_NEAR(tensors[2][0], 0.02, 1e-8);
}

TEST(Quantize, TiesGoToTheEvenNumber) {
  // The largest is 127: a step is 1.
  const auto tensors =
      run_reference("quantize", Type::kFloat32, {{"seq", 1}, {"hidden", 4}, {"group", 0}, {"format", kInt8}},
                    {{127, 2.5, 3.5, -0.5}});
  EXPECT_EQ(tensors[1], (std::vector<double>{127, 2, 4, 0}));
}

TEST(Quantize, Float8ByHand) {
  // The largest is 448, the format's own: a step is 1. Between 16 and 32 it holds multiples of 2, from 256 on of 32.
  const auto tensors =
      run_reference("quantize", Type::kFloat32, {{"seq", 1}, {"hidden", 4}, {"group", 0}, {"format", kFloat8}},
                    {{-448, 17.5, 300, 0.25}});
  EXPECT_EQ(tensors[1], (std::vector<double>{-448, 18, 288, 0.25}));
  EXPECT_EQ(tensors[2], (std::vector<double>{1}));
}

TEST(Quantize, EveryGroupHasItsScale) {
  const auto tensors = run_reference("quantize", Type::kFloat32,
                                     {{"seq", 1}, {"hidden", 4}, {"group", 2}, {"format", kInt8}}, {{127, 1, 254, 1}});
  EXPECT_EQ(tensors[1], (std::vector<double>{127, 1, 127, 0}));  // 0.5 is a tie
  EXPECT_EQ(tensors[2], (std::vector<double>{1, 2}));
}

TEST(Quantize, ZerosStayZeros) {
  const auto tensors =
      run_reference("quantize", Type::kFloat32, {{"seq", 1}, {"hidden", 2}, {"group", 0}, {"format", kInt8}}, {{0, 0}});
  EXPECT_EQ(tensors[1], (std::vector<double>{0, 0}));
}

TEST(Quantize, WorkByHand) {
  // 10 tokens of 256 values of 2 bytes read; a byte each written, and 2 scales of 4 bytes per token.
  const Axes axes{{"batch", 2}, {"seq", 5}, {"hidden", 256}, {"group", 128}, {"format", kFloat8}};
  const model::KernelWork work = work_of("quantize", Type::kBfloat16, axes);
  EXPECT_EQ(work.flops, 0);
  EXPECT_EQ(work.read_bytes, 5120);
  EXPECT_EQ(work.write_bytes, 2640);
}

TEST(Quantize, CpuEqualsTheReferenceToTheLastBit) {
  for (const int format : {kInt8, kFloat8}) {
    EXPECT_EQ(cpu_error("quantize", Type::kFloat32, {{"seq", 7}, {"hidden", 999}, {"group", 0}, {"format", format}}),
              0);
    EXPECT_EQ(
        cpu_error("quantize", Type::kFloat32, {{"seq", 70}, {"hidden", 1024}, {"group", 128}, {"format", format}}), 0);
  }
}

TEST(Quantize, RefusesGroupsThatDoNotDivide) {
  const auto problem = make_problem(*find_operator("quantize"), Type::kFloat32, Axes{{"hidden", 100}, {"group", 64}});
  ASSERT_FALSE(problem);
  EXPECT_EQ(problem.error().code, ErrorCode::kUsage);
  EXPECT_EQ(problem.error().message, "quantize: groups of 64 do not divide hidden = 100");
}

TEST(Quantize, RefusesFormatsItDoesNotKnow) {
  EXPECT_FALSE(make_problem(*find_operator("quantize"), Type::kFloat32, Axes{{"format", 2}}));
}

}  // namespace
}  // namespace llmprof::bench
