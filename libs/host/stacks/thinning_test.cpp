#include "host/stacks/thinning.h"

#include <gtest/gtest.h>

namespace llmprof::host {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

// Samples of a second, and what working on one takes.
void second(Thinning& thinning, int main_samples, int other_samples, std::uint64_t each_ns) {
  std::uint64_t worked = 0;
  for (int i = 0; i < main_samples; ++i) worked += thinning.take(true) != 0 ? 1 : 0;
  for (int i = 0; i < other_samples; ++i) worked += thinning.take(false) != 0 ? 1 : 0;
  thinning.spent(worked * each_ns, kSecond);
}

TEST(Thinning, TakesEverythingWithinTheBudget) {
  Thinning thinning(0.02);
  second(thinning, 100, 100, 100'000);
  EXPECT_EQ(thinning.take(true), 1u);
  EXPECT_EQ(thinning.take(false), 1u);
  thinning.spent(1, 0);  // no time passed: nothing to learn
  EXPECT_EQ(thinning.one_in(true), 1u);
  EXPECT_EQ(thinning.left_out(), 0u);
}

TEST(Thinning, KeepsToTheBudgetAndTheSum) {
  Thinning thinning(0.02);
  second(thinning, 100, 0, 1'000'000);  // 10 % of a core, 2 % allowed
  EXPECT_EQ(thinning.one_in(true), 5u);
  std::uint64_t taken = 0, weight = 0;
  for (int i = 0; i < 100'000; ++i) {
    const std::uint32_t stands_for = thinning.take(true);
    taken += stands_for != 0 ? 1 : 0;
    weight += stands_for;
  }
  // Binomial with p = 1/5: standard deviation sqrt(100000 * 0.16) = 126; ten of them.
  EXPECT_NEAR(static_cast<double>(taken), 20'000, 1'260);
  EXPECT_EQ(weight, 5 * taken);
  EXPECT_EQ(thinning.left_out(), 100'000 - taken);
  thinning.spent(taken * 1'000, kSecond);  // it got cheap: all of them would take 10 %
  EXPECT_EQ(thinning.one_in(true), 5u);
  second(thinning, 100, 0, 1'000);  // the program does less
  EXPECT_EQ(thinning.one_in(true), 1u);
}

// Two threads sampled in turn: each gets its half.
TEST(Thinning, FavoursNobody) {
  Thinning thinning(0.02);
  second(thinning, 40, 0, 1'000'000);
  ASSERT_EQ(thinning.one_in(true), 2u);
  std::uint64_t weight[2] = {};
  for (int i = 0; i < 100'000; ++i) weight[i % 2] += thinning.take(true);
  EXPECT_NEAR(static_cast<double>(weight[0]), 50'000, 2'300);  // ten standard deviations, sqrt(50000 * 1) = 224
  EXPECT_NEAR(static_cast<double>(weight[1]), 50'000, 2'300);
}

// The thread that launches keeps its rate beside thirty that spin, and those are not left out altogether.
TEST(Thinning, MainThreadsComeFirst) {
  Thinning thinning(0.02);
  second(thinning, 99, 30 * 99, 100'000);  // 0.99 % for the main thread; 29.7 % for the others
  EXPECT_EQ(thinning.one_in(true), 1u);
  EXPECT_EQ(thinning.one_in(false), 30u);  // of the 1.01 % left
}

}  // namespace
}  // namespace llmprof::host
