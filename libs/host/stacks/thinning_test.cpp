#include "host/stacks/thinning.h"

#include <gtest/gtest.h>

namespace llmprof::host {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

TEST(Thinning, TakesEverythingWithinTheBudget) {
  Thinning thinning(0.02);
  thinning.spent(kSecond / 50, kSecond);
  EXPECT_EQ(thinning.take(), 1u);
  thinning.spent(1, 0);  // no time passed: nothing to learn
  EXPECT_EQ(thinning.one_in(), 1u);
}

TEST(Thinning, KeepsToTheBudgetAndTheSum) {
  Thinning thinning(0.02);
  thinning.spent(kSecond / 10, kSecond);  // 10 % of a core, 2 % allowed
  EXPECT_EQ(thinning.one_in(), 5u);
  std::uint64_t taken = 0, weight = 0;
  for (int i = 0; i < 100'000; ++i) {
    const std::uint32_t stands_for = thinning.take();
    taken += stands_for != 0 ? 1 : 0;
    weight += stands_for;
  }
  // Binomial with p = 1/5: standard deviation sqrt(100000 * 0.16) = 126; ten of them.
  EXPECT_NEAR(static_cast<double>(taken), 20'000, 1'260);
  EXPECT_EQ(weight, 5 * taken);
  thinning.spent(kSecond / 50, kSecond);  // what it then takes
  EXPECT_EQ(thinning.one_in(), 5u);
  thinning.spent(kSecond / 1000, kSecond);  // the program does less: 0.1 % x 5 for all
  EXPECT_EQ(thinning.one_in(), 1u);
}

// Two threads sampled in turn: each gets its half.
TEST(Thinning, FavoursNobody) {
  Thinning thinning(0.02);
  thinning.spent(kSecond / 25, kSecond);
  ASSERT_EQ(thinning.one_in(), 2u);
  std::uint64_t weight[2] = {};
  for (int i = 0; i < 100'000; ++i) weight[i % 2] += thinning.take();
  EXPECT_NEAR(static_cast<double>(weight[0]), 50'000, 2'300);  // ten standard deviations, sqrt(50000 * 1) = 224
  EXPECT_NEAR(static_cast<double>(weight[1]), 50'000, 2'300);
}

}  // namespace
}  // namespace llmprof::host
