#include <gtest/gtest.h>

#include "bench/operator.h"
#include "bench/ops/testing.h"

namespace llmprof::bench {
namespace {

Axes image(std::int64_t side, std::int64_t kernel, std::int64_t stride, std::int64_t padding) {
  return {{"batch", 1},    {"channels", 1},    {"out_channels", 1}, {"height", side},
          {"width", side}, {"kernel", kernel}, {"stride", stride},  {"padding", padding}};
}

const std::vector<double> kOneToNine{1, 2, 3, 4, 5, 6, 7, 8, 9};
const std::vector<double> kNineOnes(9, 1);

TEST(Conv2d, IsACrossCorrelation) {
  // The kernel (1 0 / 0 -1) is not turned around: x[p, q] - x[p + 1, q + 1] = -4 everywhere.
  const auto tensors = run_reference("conv2d", Type::kFloat32, image(3, 2, 1, 0), {kOneToNine, {1, 0, 0, -1}});
  EXPECT_EQ(tensors[2], (std::vector<double>{-4, -4, -4, -4}));
}

TEST(Conv2d, PadsWithZeros) {
  // Sums of the neighbourhood: 1 + 2 + 4 + 5 = 12 in a corner, all 45 in the middle.
  const auto tensors = run_reference("conv2d", Type::kFloat32, image(3, 3, 1, 1), {kOneToNine, kNineOnes});
  EXPECT_EQ(tensors[2], (std::vector<double>{12, 21, 16, 27, 45, 33, 24, 39, 28}));
}

TEST(Conv2d, StridesOverResults) {
  const auto tensors = run_reference("conv2d", Type::kFloat32, image(3, 3, 2, 1), {kOneToNine, kNineOnes});
  EXPECT_EQ(tensors[2], (std::vector<double>{12, 16, 24, 28}));
}

TEST(Conv2d, HalfTypesHaveTheirChannelsLast) {
  // An image of 1 x 2 with two channels, (1, 2) in the first and (10, 20) in the second. Of two kernels of one value
  // the first takes the first channel, the second the sum of both.
  const Axes axes{{"batch", 1}, {"channels", 2}, {"out_channels", 2}, {"height", 1},
                  {"width", 2}, {"kernel", 1},   {"stride", 1},       {"padding", 0}};
  const std::vector<double> weights{1, 0, 1, 1};
  EXPECT_EQ(run_reference("conv2d", Type::kFloat32, axes, {{1, 2, 10, 20}, weights})[2],
            (std::vector<double>{1, 2, 11, 22}));
  EXPECT_EQ(run_reference("conv2d", Type::kBfloat16, axes, {{1, 10, 2, 20}, weights})[2],
            (std::vector<double>{1, 11, 2, 22}));
}

TEST(Conv2d, WorkByHand) {
  // The example of PyTorch's Conv2d(16, 33, 3, stride=2) on 20 x 16 x 50 x 100: results of 24 x 49, so
  // 2 * 20 * 24 * 49 * 33 * 16 * 9 FLOPs; 1,600,000 values and 4,752 weights read, 20 * 33 * 24 * 49 written.
  const Axes axes{{"batch", 20},  {"channels", 16}, {"out_channels", 33}, {"height", 50},
                  {"width", 100}, {"kernel", 3},    {"stride", 2},        {"padding", 0}};
  const model::KernelWork work = work_of("conv2d", Type::kFloat32, axes);
  EXPECT_EQ(work.flops, 223'534'080);
  EXPECT_EQ(work.read_bytes, 4 * 1'604'752);
  EXPECT_EQ(work.write_bytes, 4 * 776'160);
}

TEST(Conv2d, CpuEqualsTheReference) {
  const auto error = [](std::int64_t kernel, std::int64_t stride, std::int64_t padding) {
    return cpu_error("conv2d", Type::kFloat32,
                     {{"batch", 2},
                      {"channels", 5},
                      {"out_channels", 7},
                      {"height", 13},
                      {"width", 17},
                      {"kernel", kernel},
                      {"stride", stride},
                      {"padding", padding}});
  };
  EXPECT_LT(error(3, 1, 1), 1e-6);
  EXPECT_LT(error(1, 1, 0), 1e-6);
  EXPECT_LT(error(5, 2, 2), 1e-6);
  EXPECT_LT(error(4, 3, 0), 1e-6);
  EXPECT_LT(error(2, 1, 5), 1e-6);  // results that see nothing but zeros
  EXPECT_LT(error(13, 40, 0), 1e-6);
}

TEST(Conv2d, RefusesKernelsLargerThanTheImage) {
  const auto problem = make_problem(*find_operator("conv2d"), Type::kFloat32, image(3, 6, 1, 1));
  ASSERT_FALSE(problem);
  EXPECT_EQ(problem.error().code, ErrorCode::kUsage);
  EXPECT_EQ(problem.error().message, "conv2d: a kernel of 6 does not fit into height = 3 with 1 zeros on each side");
}

TEST(Conv2d, RefusesSizesThatOverflow) {
  constexpr std::int64_t kHuge = std::int64_t{1} << 62;
  const Operator& op = *find_operator("conv2d");
  for (const char* axis : {"batch", "channels", "height", "padding", "kernel"}) {
    EXPECT_FALSE(make_problem(op, Type::kFloat32, Axes{{axis, kHuge}})) << axis;
  }
  EXPECT_TRUE(make_problem(op, Type::kFloat32, Axes{{"stride", kHuge}}));  // one result per image
}

TEST(Conv2d, TheSmallProblemIsOne) {
  // Whatever is asked for, its smaller cousin fits and is small.
  for (const Axes& axes : {image(2, 10, 1, 4), image(1000, 100, 7, 300), image(50, 3, std::int64_t{1} << 62, 0)}) {
    const Problem small = find_operator("conv2d")->small(problem_of("conv2d", Type::kFloat32, axes));
    EXPECT_TRUE(find_operator("conv2d")->check(small)) << small.sizes();
    EXPECT_LT(work_of("conv2d", Type::kFloat32, small.axes).flops, 1e9) << small.sizes();
  }
}

}  // namespace
}  // namespace llmprof::bench
