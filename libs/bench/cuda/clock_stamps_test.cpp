#include "bench/cuda/clock.h"

#include <gtest/gtest.h>

#include <vector>

namespace llmprof::bench::cuda {
namespace {

TEST(ClockStamps, CyclesOverTimeInTheMiddle) {
  // 100 us each: 198,000, 150,000 and 99,000 cycles are 1980, 1500 and 990 MHz. The counters differ between processors.
  const std::vector<ClockStamp> begin{{1'000, 5'000}, {70'000, 5'000}, {5, 5'000}};
  const std::vector<ClockStamp> end{{199'000, 105'000}, {220'000, 105'000}, {99'005, 105'000}};
  EXPECT_DOUBLE_EQ(mhz_between(begin, end), 1500);
}

TEST(ClockStamps, ProcessorsWithoutBothStampsAreLeftOut) {
  const std::vector<ClockStamp> begin{{0, 0}, {1'000, 5'000}, {1'000, 5'000}};
  const std::vector<ClockStamp> end{{500'000, 105'000}, {0, 0}, {101'000, 105'000}};
  EXPECT_DOUBLE_EQ(mhz_between(begin, end), 1000);
}

TEST(ClockStamps, TooCloseOrNothingIsUnknown) {
  EXPECT_EQ(mhz_between({}, {}), 0);
  const std::vector<ClockStamp> begin{{1'000, 5'000}}, end{{11'000, 15'000}};  // 10 us
  EXPECT_EQ(mhz_between(begin, end), 0);
}

}  // namespace
}  // namespace llmprof::bench::cuda
