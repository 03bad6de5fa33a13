#include "hw/roof.h"

#include <gtest/gtest.h>

#include <limits>

namespace llmprof::hw {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

Floor floor_at(double flops, double bytes, double peak_flops, double peak_bandwidth) {
  return floor_of(time_ns(flops, peak_flops), time_ns(bytes, peak_bandwidth));
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
    EXPECT_FALSE(floor_at(1, 1, bad, 1).ns);
    EXPECT_FALSE(floor_at(1, 1, 1, bad).ns);
    EXPECT_EQ(floor_at(1, 1, bad, 1).bound(), "unknown");
    EXPECT_EQ(floor_at(1, 1, 1, bad).bound(), "unknown");
  }
  EXPECT_EQ(floor_at(0, 0, 1, 1).bound(), "unknown");
  EXPECT_FALSE(floor_at(-1, 5, 1, 1).ns);
}

TEST(Floor, IsTheSlowerOfComputeAndMemory) {
  // Peaks 100 GFLOP/s and 10 GB/s: ridge 10 FLOP per byte.
  EXPECT_DOUBLE_EQ(*floor_at(2e9, 1e8, 1e11, 1e10).ns, 2e7);  // 20 ms of arithmetic, 10 ms of bytes
  EXPECT_EQ(floor_at(2e9, 1e8, 1e11, 1e10).bound(), "compute");
  EXPECT_DOUBLE_EQ(*floor_at(5e8, 1e8, 1e11, 1e10).ns, 1e7);  // 5 ms and 10 ms
  EXPECT_EQ(floor_at(5e8, 1e8, 1e11, 1e10).bound(), "memory");
  EXPECT_DOUBLE_EQ(*floor_at(0, 1e8, 1e11, 1e10).ns, 1e7);  // element-wise work has bytes only
  EXPECT_EQ(floor_at(0, 1e8, 1e11, 1e10).bound(), "memory");
  EXPECT_DOUBLE_EQ(*ridge(1e11, 1e10), 10);
}

TEST(Roofline, EachTypeAtItsOwnPeak) {
  const std::vector<Peak> peaks{{"flops", "bfloat16", 1e12, "FLOP/s", "spec", ""},
                                {"flops", "float8", 2e12, "FLOP/s", "spec", ""},
                                {"bandwidth", "read", 1e10, "B/s", "measured", ""}};
  const Roofline roofline(peaks, "a device", {"bfloat16", "float8_e4m3", "float64"});
  EXPECT_DOUBLE_EQ(*roofline.compute_ns({{"bfloat16", 1e6}, {"float8_e4m3", 1e6}}), 1500);
  EXPECT_DOUBLE_EQ(*roofline.ridge({{"bfloat16", 1e6}, {"float8_e4m3", 1e6}}), 2e6 / 1.5e-6 / 1e10);
  EXPECT_FALSE(roofline.compute_ns({{"float64", 1.0}}));
  EXPECT_EQ(roofline.unknown_types(), std::vector<std::string>{"float64"});
}

TEST(PlainCores, OnlyFloat32HasThePeakOfItsName) {
  const std::vector<Peak> peaks{{"flops", "float32", 1, "FLOP/s", "spec", ""},
                                {"flops", "float16", 2, "FLOP/s", "spec", ""},
                                {"flops", "float64_vector", 3, "FLOP/s", "spec", ""}};
  EXPECT_EQ(plain_cores_peak(peaks, "float32")->value, 1);
  EXPECT_EQ(plain_cores_peak(peaks, "float16"), nullptr);  // that of the tensor cores
  EXPECT_EQ(plain_cores_peak(peaks, "float64")->value, 3);
}

}  // namespace
}  // namespace llmprof::hw
