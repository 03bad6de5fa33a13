#include "analyze/passes/repeated_products.h"

#include <gtest/gtest.h>

namespace llmprof::analyze {
namespace {

// Launches 10 ns apart; the host rests before each step.
struct Recorded {
  LaunchSequence sequence;
  std::int64_t now_ns = 1000;
  void launch(std::uint32_t symbol, std::int64_t device_ns = 10) {
    sequence.symbol.push_back(symbol);
    sequence.begin_ns.push_back(now_ns);
    sequence.done_ns.push_back(now_ns + 100);
    sequence.device_ns.push_back(device_ns);
    now_ns += 10;
  }
  // An embedding, 8 layers of three kernels, logits, sampling: 27 launches.
  void token() {
    now_ns += 500;
    launch(1);
    for (int layer = 0; layer < 8; ++layer)
      for (const std::uint32_t kernel : {2u, 3u, 4u}) launch(kernel);
    launch(5);
    launch(6);
  }
};

TEST(Period, IsTheTokenAndNotTheLayer) {
  Recorded run;
  for (std::uint32_t i = 0; i < 40; ++i) run.launch(100 + i);  // something else first
  for (int i = 0; i < 20; ++i) run.token();
  const auto period = find_period(run.sequence);
  ASSERT_TRUE(period);
  EXPECT_EQ(period->period, 27u);
  ASSERT_EQ(period->steps.size(), 20u);
  // Each begins after the pause and ends where the next begins: 27 launches and the pause.
  EXPECT_EQ(period->steps[1].begin_ns, period->steps[0].end_ns);
  EXPECT_EQ(period->steps[1].end_ns - period->steps[1].begin_ns, 27 * 10 + 500);
  EXPECT_EQ(period->steps[0].begin_ns, 1000 + 40 * 10 + 500);
}

TEST(Period, ALaunchThatChangesNowAndThenDoesNotBreakIt) {
  Recorded run;
  for (int i = 0; i < 20; ++i) {
    run.token();
    if (i % 5 == 4) run.launch(7);  // 28 launches
  }
  const auto period = find_period(run.sequence);
  ASSERT_TRUE(period);
  EXPECT_EQ(period->period, 27u);
  EXPECT_EQ(period->steps.size(), 20u);
}

TEST(Period, OneLaunchAgainAndAgain) {
  Recorded run;
  for (int i = 0; i < 10; ++i) {
    run.now_ns += 50;
    run.launch(3);
  }
  const auto period = find_period(run.sequence);
  ASSERT_TRUE(period);
  EXPECT_EQ(period->period, 1u);
}

TEST(Period, NothingRepeats) {
  Recorded run;
  for (std::uint32_t i = 0; i < 100; ++i) run.launch(i * i % 97 + i);
  EXPECT_FALSE(find_period(run.sequence));
  EXPECT_FALSE(find_period({}));
}

}  // namespace
}  // namespace llmprof::analyze
