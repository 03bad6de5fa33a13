#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "model/model.h"

namespace llmprof::model {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

TEST(Efficiency, Gemm) {
  EXPECT_EQ(gemm_flops(3, 4, 5, 2), 2 * 3 * 4 * 5 * 2);
  EXPECT_EQ(gemm_bytes(3, 4, 5, 2, 4), (3 * 5 + 5 * 4 + 3 * 4) * 2 * 4);
  EXPECT_EQ(gemm_flops(1 << 30, 1 << 30, 1 << 30, 1), 2 * std::ldexp(1.0, 90));  // no overflow
}

TEST(Efficiency, IsAmountPerTimePerPeak) {
  // 500 FLOP in 2 µs = 250 MFLOP/s of a peak of 1 GFLOP/s.
  EXPECT_DOUBLE_EQ(*efficiency(500, 2000, 1e9), 0.25);
}

TEST(Efficiency, UnknownUnlessAllIsKnown) {
  for (const double bad : {0.0, -1.0, kNan, kInf}) {
    EXPECT_FALSE(efficiency(bad, 1, 1));
    EXPECT_FALSE(efficiency(1, bad, 1));
    EXPECT_FALSE(efficiency(1, 1, bad));
    EXPECT_FALSE(floor_ns(1, 1, bad, 1));
    EXPECT_FALSE(floor_ns(1, 1, 1, bad));
    EXPECT_EQ(bound_by(1, 1, bad, 1), "unknown");
    EXPECT_EQ(bound_by(1, 1, 1, bad), "unknown");
  }
  EXPECT_FALSE(floor_ns(0, 0, 1, 1));
  EXPECT_EQ(bound_by(0, 0, 1, 1), "unknown");
  EXPECT_FALSE(floor_ns(-1, 5, 1, 1));
}

TEST(Floor, IsTheSlowerOfComputeAndMemory) {
  // Peaks 100 GFLOP/s and 10 GB/s: ridge 10 FLOP per byte.
  EXPECT_DOUBLE_EQ(*floor_ns(2e9, 1e8, 1e11, 1e10), 2e7);  // 20 ms of arithmetic, 10 ms of bytes
  EXPECT_EQ(bound_by(2e9, 1e8, 1e11, 1e10), "compute");
  EXPECT_DOUBLE_EQ(*floor_ns(5e8, 1e8, 1e11, 1e10), 1e7);  // 5 ms and 10 ms
  EXPECT_EQ(bound_by(5e8, 1e8, 1e11, 1e10), "memory");
  EXPECT_DOUBLE_EQ(*floor_ns(0, 1e8, 1e11, 1e10), 1e7);  // element-wise work has bytes only
  EXPECT_EQ(bound_by(0, 1e8, 1e11, 1e10), "memory");
}

}  // namespace
}  // namespace llmprof::model
