#include <gtest/gtest.h>

#include "bench/operator.h"
#include "bench/ops/testing.h"

namespace llmprof::bench {
namespace {

constexpr int kInt8 = 0, kFloat8 = 1, kInt4 = 2;

TEST(Dequantize, Int8ByHand) {
  const auto tensors =
      run_reference("dequantize", Type::kFloat32, {{"seq", 2}, {"hidden", 2}, {"group", 0}, {"format", kInt8}},
                    {{127, -3, 2, 0}, {0.5, 10}});
  EXPECT_EQ(tensors[2], (std::vector<double>{63.5, -1.5, 20, 0}));
}

TEST(Dequantize, GroupsOfFloat8ByHand) {
  const auto tensors =
      run_reference("dequantize", Type::kFloat32, {{"seq", 1}, {"hidden", 4}, {"group", 2}, {"format", kFloat8}},
                    {{448, -0.5, 1.125, 2}, {2, 4}});
  EXPECT_EQ(tensors[2], (std::vector<double>{896, -1, 4.5, 8}));
}

TEST(Dequantize, Int4ByHand) {
  // 0x2f: 15 - 8 = 7 first, then 2 - 8 = -6. 0x80, -128 as an int8: -8, then 0.
  const auto tensors =
      run_reference("dequantize", Type::kFloat32, {{"seq", 1}, {"hidden", 4}, {"group", 2}, {"format", kInt4}},
                    {{0x2f, -128}, {1, 0.5}});
  EXPECT_EQ(tensors[2], (std::vector<double>{7, -6, -4, 0}));
}

TEST(Dequantize, WorkByHand) {
  // 10 rows of 256 values written, 2 bytes each. int8: a byte each read, 2 scales of 4 bytes per row; int4: half a byte
  // each, and the scales have 2 bytes.
  const Axes int8{{"batch", 2}, {"seq", 5}, {"hidden", 256}, {"group", 128}, {"format", kInt8}};
  EXPECT_EQ(work_of("dequantize", Type::kBfloat16, int8).read_bytes, 2640);
  EXPECT_EQ(work_of("dequantize", Type::kBfloat16, int8).write_bytes, 5120);
  const Axes int4{{"batch", 2}, {"seq", 5}, {"hidden", 256}, {"group", 128}, {"format", kInt4}};
  EXPECT_EQ(work_of("dequantize", Type::kBfloat16, int4).read_bytes, 1320);
  EXPECT_EQ(work_of("dequantize", Type::kBfloat16, int4).flops, 0);
}

TEST(Dequantize, CpuEqualsTheReference) {
  for (const int format : {kInt8, kFloat8, kInt4}) {
    const Axes groups{{"seq", 70}, {"hidden", 1024}, {"group", 128}, {"format", format}};
    EXPECT_LT(cpu_error("dequantize", Type::kFloat32, groups), 1e-6);
    const Axes rows{{"seq", 7}, {"hidden", 998}, {"group", 0}, {"format", format}};
    EXPECT_LT(cpu_error("dequantize", Type::kFloat32, rows), 1e-6);
  }
}

TEST(Dequantize, RefusesHalfABytePerRow) {
  const auto problem =
      make_problem(*find_operator("dequantize"), Type::kFloat32, Axes{{"hidden", 99}, {"group", 0}, {"format", kInt4}});
  ASSERT_FALSE(problem);
  EXPECT_EQ(problem.error().message, "dequantize: groups of 99 values of int4 end inside a byte");
}

TEST(Dequantize, RefusesGroupsThatDoNotDivide) {
  EXPECT_FALSE(make_problem(*find_operator("dequantize"), Type::kFloat32, Axes{{"hidden", 100}, {"group", 64}}));
}

}  // namespace
}  // namespace llmprof::bench
