#include "collect/cuda/kernel_sampling.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>

namespace llmprof::collect {
namespace {

using Action = KernelSampling::Action;
constexpr std::uint64_t kMs = 1000000;

// A program that launches kernels, one every 0.1 ms.
class Program {
 public:
  explicit Program(bool samples = true) {
    if (samples) sampling->begin(now_);
  }
  Action launch(std::uint64_t key) {
    now_ += kMs / 10;
    const KernelSampling::Decision decision = sampling->launch_begins(key, now_);
    number = decision.number;
    if (decision.action != Action::kNone) sampling->switched(decision.action);
    if (sampling->is_recording()) ++recorded;
    return decision.action;
  }
  // A step of `kernels` launches that are all different, `steps` times: how many were recorded.
  int steps(int steps, int kernels) {
    recorded = 0;
    for (int i = 0; i < steps * kernels; ++i) launch(static_cast<std::uint64_t>(i % kernels) + 1);
    return recorded;
  }
  std::unique_ptr<KernelSampling> sampling = std::make_unique<KernelSampling>();
  std::uint16_t number = 0;
  int recorded = 0;

 private:
  std::uint64_t now_ = 1000 * kMs;
};

TEST(KernelSampling, IsNotInForceBeforeItBegins) {
  Program program(false);
  EXPECT_FALSE(program.sampling->is_in_force());
  EXPECT_TRUE(program.sampling->is_recording());
}

TEST(KernelSampling, RecordsAStretchInEight) {
  Program program;
  EXPECT_EQ(program.steps(23, 1000), 8000);  // 2.3 s: until they repeat, then they are noted
  const int recorded = program.steps(240, 1000);
  EXPECT_NEAR(recorded, 30000, 3500);
}

TEST(KernelSampling, SameLaunchesHaveTheSameNumber) {
  Program program;
  program.launch(7);
  const std::uint16_t seven = program.number;
  program.launch(8);
  EXPECT_NE(program.number, seven);
  program.launch(7);
  EXPECT_EQ(program.number, seven);
  EXPECT_NE(seven, 0);
}

// A kernel that comes for the first time is recorded although the others are only noted; and so are its first
// repetitions.
TEST(KernelSampling, WhatIsNewIsRecorded) {
  Program program;
  program.steps(40, 100);
  ASSERT_FALSE(program.sampling->is_recording());
  for (std::uint32_t i = 0; i < KernelSampling::kFew; ++i) {
    EXPECT_EQ(program.launch(1000), Action::kRecord) << i;
    EXPECT_TRUE(program.sampling->is_recording());
    program.steps(1, 50);  // 5 ms of known ones: noted again
    EXPECT_FALSE(program.sampling->is_recording());
  }
  EXPECT_EQ(program.launch(1000), Action::kNone);
  EXPECT_FALSE(program.sampling->is_recording());
}

TEST(KernelSampling, EndsWhereNothingRepeats) {
  Program program;
  program.steps(40, 100);
  for (std::uint64_t i = 0; i < 1000 && program.sampling->is_in_force(); ++i) {
    program.launch(5000 + i);
    program.steps(1, 50);
  }
  EXPECT_FALSE(program.sampling->is_in_force());
  EXPECT_TRUE(program.sampling->is_recording());
  EXPECT_STREQ(program.sampling->why_not(), "its launches do not repeat");
}

TEST(KernelSampling, GivenUpItRecordsEverything) {
  Program program;
  program.steps(40, 100);
  ASSERT_FALSE(program.sampling->is_recording());
  EXPECT_TRUE(program.sampling->give_up("graphs"));  // the caller switches
  EXPECT_FALSE(program.sampling->give_up("again"));
  EXPECT_STREQ(program.sampling->why_not(), "graphs");
  EXPECT_TRUE(program.sampling->is_recording());
  program.sampling->begin(0);
  EXPECT_FALSE(program.sampling->is_in_force());
}

// Whoever switches when another thread gives it up switches back.
TEST(KernelSampling, NothingStaysOffAfterItWasGivenUp) {
  for (int round = 0; round < 200; ++round) {
    Program program;
    std::atomic<bool> on{true}, given_up{false};
    std::thread launches([&] {
      std::uint64_t now = 0;
      for (int i = 0; i < 2000; ++i) {
        now += 400 * kMs;  // every launch may switch
        if (!program.sampling->is_in_force()) continue;
        const auto decision = program.sampling->launch_begins(1, now);
        if (decision.action == Action::kNone) continue;
        on = decision.action == Action::kRecord;
        if (program.sampling->switched(decision.action)) on = true;
      }
    });
    std::thread captures([&] {
      std::this_thread::yield();
      if (program.sampling->give_up("graphs")) on = true;
      given_up = true;
    });
    launches.join();
    captures.join();
    EXPECT_TRUE(on) << round;
  }
}

TEST(LaunchTrace, TellsLaunchesByWhatWasBefore) {
  const char kernel = 0, other = 0;
  const std::uint32_t grid[3] = {16, 1, 1}, block[3] = {128, 1, 1};
  const LaunchTrace::Size size{grid, block};
  LaunchTrace a{}, b{};
  a.next(&other, size);
  EXPECT_NE(a.next(&kernel, size), b.next(&kernel, size));
  for (int i = 0; i < 2; ++i) a.next(&other, size), b.next(&other, size);
  EXPECT_EQ(a.next(&kernel, size), b.next(&kernel, size));
}

TEST(LaunchTrace, SizesThatGrowALittleAreTheSame) {
  EXPECT_EQ(LaunchTrace::rough(4), 4u);
  EXPECT_EQ(LaunchTrace::rough(513), LaunchTrace::rough(600));
  EXPECT_NE(LaunchTrace::rough(513), LaunchTrace::rough(700));
  EXPECT_EQ(LaunchTrace::rough(~0u), 0xE0000000u);
}

}  // namespace
}  // namespace llmprof::collect
