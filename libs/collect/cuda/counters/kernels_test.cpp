// The pieces of counting single kernels that decide, without CUPTI.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include "collect/cuda/counters/choice.h"

namespace llmprof::collect::counters {
namespace {

constexpr std::uint64_t kMs = 1000000;

class KernelChoiceTest : public testing::Test {
 protected:
  // Launches `signature` 1 ms later, and measures if that is wanted; what came of it.
  enum Outcome { kSkipped, kMeasured, kMeasuredAfterGivingUp, kGaveUp };
  Outcome launch(std::uint64_t signature, std::uint32_t passes = 1) {
    now_ns_ += kMs;
    bool is_new = false, gave_up = false;
    const std::size_t number = choice_->saw(signature, now_ns_, &is_new);
    if (number == KernelChoice::kNone) return kSkipped;
    const bool wanted = choice_->wants(number, &gave_up);
    if (gave_up) passes_made_ = 0;
    if (!wanted) return gave_up ? kGaveUp : kSkipped;
    const bool all = ++passes_made_ == passes;
    choice_->measured(number, all);
    if (all) passes_made_ = 0;
    return gave_up ? kMeasuredAfterGivingUp : kMeasured;
  }

  std::unique_ptr<KernelChoice> choice_ = std::make_unique<KernelChoice>();
  std::uint64_t now_ns_ = 0;
  std::uint32_t passes_made_ = 0;
};

TEST_F(KernelChoiceTest, TheOneThatWasTriedLeastComesNext) {
  EXPECT_EQ(launch(1), kMeasured);
  EXPECT_EQ(launch(1), kMeasured);  // nobody else is there
  EXPECT_EQ(launch(2), kMeasured);  // 2 against 0
  EXPECT_EQ(launch(1), kSkipped);   // 2 against 1
  EXPECT_EQ(launch(2), kMeasured);
  EXPECT_EQ(launch(1), kMeasured);  // 2 against 2
  EXPECT_EQ(choice_->count(), 2u);
}

TEST_F(KernelChoiceTest, PassesStayWithOneSignature) {
  EXPECT_EQ(launch(1, 3), kMeasured);
  EXPECT_TRUE(choice_->is_under_way());
  EXPECT_EQ(launch(2, 3), kSkipped);
  EXPECT_EQ(launch(1, 3), kMeasured);
  EXPECT_EQ(launch(2, 3), kSkipped);
  EXPECT_EQ(launch(1, 3), kMeasured);
  EXPECT_FALSE(choice_->is_under_way());
  EXPECT_EQ(launch(1, 3), kSkipped);
  EXPECT_EQ(launch(2, 3), kMeasured);
}

TEST_F(KernelChoiceTest, ASignatureThatDoesNotComeAgainIsGivenUp) {
  EXPECT_EQ(launch(1, 2), kMeasured);
  for (int i = 0; i < 2000; ++i) ASSERT_EQ(launch(2, 2), kSkipped) << i;  // 2 s
  EXPECT_EQ(launch(2, 2), kMeasuredAfterGivingUp);
  EXPECT_EQ(launch(2, 2), kMeasured);
  EXPECT_EQ(launch(2, 2), kMeasured);  // 1 has been tried once, as 2 has
}

TEST_F(KernelChoiceTest, ManyLaunchesAreAsLongAsSeconds) {
  bool is_new = false, gave_up = false;
  choice_->measured(choice_->saw(1, 1, &is_new), false);
  std::size_t other = 0;
  for (std::uint64_t i = 0; i < KernelChoice::kPatienceLaunches; ++i) {
    other = choice_->saw(2, 1, &is_new);
    ASSERT_FALSE(choice_->wants(other, &gave_up));
    ASSERT_FALSE(gave_up);
  }
  other = choice_->saw(2, 1, &is_new);
  EXPECT_TRUE(choice_->wants(other, &gave_up));
  EXPECT_TRUE(gave_up);
}

// What was launched once, at the beginning, does not keep the others from being measured.
TEST_F(KernelChoiceTest, WhatIsGoneIsNotWaitedFor) {
  bool is_new = false;
  choice_->saw(1, now_ns_, &is_new);  // never tried: the budget did not allow it
  EXPECT_TRUE(is_new);
  EXPECT_EQ(launch(2), kMeasured);
  EXPECT_EQ(launch(2), kSkipped);  // 1 may come yet
  now_ns_ += KernelChoice::kPatienceNs;
  EXPECT_EQ(launch(2), kMeasured);
}

TEST_F(KernelChoiceTest, ThrownAwayCountsAsTried) {
  bool is_new = false, gave_up = false;
  const std::size_t first = choice_->saw(1, 1, &is_new), second = choice_->saw(2, 1, &is_new);
  choice_->measured(first, false);
  choice_->threw_away();
  EXPECT_FALSE(choice_->is_under_way());
  EXPECT_FALSE(choice_->wants(first, &gave_up));
  EXPECT_TRUE(choice_->wants(second, &gave_up));
}

TEST_F(KernelChoiceTest, TooManySignaturesAreNotMeasured) {
  bool is_new = false;
  for (std::uint64_t i = 1; i <= KernelChoice::kMost; ++i) ASSERT_EQ(choice_->saw(i, 1, &is_new), i - 1);
  EXPECT_EQ(choice_->saw(KernelChoice::kMost + 1, 1, &is_new), KernelChoice::kNone);
  EXPECT_EQ(choice_->saw(5, 1, &is_new), 4u);
  EXPECT_FALSE(is_new);
}

// The driver's arguments: kernel, then grid and block; or a configuration that begins with them.
TEST(LaunchShape, IsReadFromTheArguments) {
  struct {
    void* function;
    std::uint32_t sizes[6];
  } plain = {nullptr, {1, 2, 3, 4, 5, 6}};
  const std::uint32_t config[] = {7, 8, 9, 10, 11, 12};
  const std::uint32_t* extended[] = {config, nullptr};
  for (const char* name : {"cuLaunchKernel", "cuLaunchKernel_ptsz", "cuLaunchCooperativeKernel"}) {
    const LaunchShape shape = shape_of(name, &plain);
    EXPECT_EQ(shape.grid[0], 1u) << name;
    EXPECT_EQ(shape.grid[2], 3u) << name;
    EXPECT_EQ(shape.block[0], 4u) << name;
    EXPECT_EQ(shape.block[2], 6u) << name;
  }
  const LaunchShape shape = shape_of("cuLaunchKernelEx", extended);
  EXPECT_EQ(shape.grid[0], 7u);
  EXPECT_EQ(shape.block[2], 12u);
  for (const char* name : {"cuLaunchCooperativeKernelMultiDevice", "cuLaunch", "cuLaunchGrid"}) {
    EXPECT_EQ(shape_of(name, &plain).grid[0], 0u) << name;
  }
  EXPECT_EQ(shape_of(nullptr, &plain).grid[0], 0u);
  EXPECT_EQ(shape_of("cuLaunchKernel", nullptr).grid[0], 0u);
}

TEST(LaunchShape, GridAndBlockMakeTheSignature) {
  const char* const symbol = "kernel";
  const LaunchShape one = {{1, 1, 1}, {32, 1, 1}}, other = {{32, 1, 1}, {1, 1, 1}};
  EXPECT_EQ(signature_of(symbol, one), signature_of(symbol, one));
  EXPECT_NE(signature_of(symbol, one), signature_of(symbol, other));
  EXPECT_NE(signature_of(symbol, one), signature_of(symbol + 1, one));
}

TEST(MergeRanges, OneRangeOrOneAPass) {
  const double nan = std::nan("");
  double merged[2];
  const double one[] = {3, nan};
  EXPECT_TRUE(merge_ranges(one, 1, 2, merged));
  EXPECT_EQ(merged[0], 3);
  EXPECT_TRUE(std::isnan(merged[1]));
  const double by_pass[] = {3, nan, nan, 4};
  EXPECT_TRUE(merge_ranges(by_pass, 2, 2, merged));
  EXPECT_EQ(merged[0], 3);
  EXPECT_EQ(merged[1], 4);
  const double two_kernels[] = {3, 4, 5, nan};
  EXPECT_FALSE(merge_ranges(two_kernels, 2, 2, merged));
  EXPECT_FALSE(merge_ranges(one, 0, 2, merged));
}

TEST(KernelVerdicts, AreRememberedByTheName) {
  const auto verdicts = std::make_unique<KernelVerdicts>();
  List patterns{};
  patterns.words[0] = "*gemm*";
  patterns.count = 1;
  char name[] = "my_gemm_kernel";
  EXPECT_TRUE(verdicts->is_asked_for(patterns, name));
  memcpy(name, "xxxxxxx", 7);  // the same address: it is not read again
  EXPECT_TRUE(verdicts->is_asked_for(patterns, name));
  EXPECT_FALSE(verdicts->is_asked_for(patterns, "copy_kernel"));
  const auto others = std::make_unique<KernelVerdicts>();
  patterns.count = 0;
  EXPECT_TRUE(others->is_asked_for(patterns, "anything"));
}

// A kernel was meant by its name, whichever way it is mangled: one spelling that is met is enough.
TEST(KernelVerdicts, ANameIsSeenInAnyOfItsSpellings) {
  const char *const plain = "nvjet_hsh_128", *const other = "foo";
  List patterns{{plain, "_Z13nvjet_hsh_128*", "_ZL13nvjet_hsh_128*", other, "_Z3foo*", "_Z3bar*"},
                {plain, plain, plain, other, other, nullptr},
                6};
  const auto verdicts = std::make_unique<KernelVerdicts>();
  EXPECT_EQ(verdicts->unseen(patterns).count, 3u);
  EXPECT_STREQ(verdicts->unseen(patterns).first, plain);
  verdicts->was_launched(patterns, "nvjet_hsh_128");
  EXPECT_EQ(verdicts->unseen(patterns).count, 2u);
  EXPECT_STREQ(verdicts->unseen(patterns).first, other);
  verdicts->was_launched(patterns, "_Z3fooPf");
  EXPECT_EQ(verdicts->unseen(patterns).count, 1u);
  EXPECT_STREQ(verdicts->unseen(patterns).first, "_Z3bar*");
  verdicts->was_launched(patterns, "_Z3barv");
  EXPECT_EQ(verdicts->unseen(patterns).count, 0u);
  EXPECT_EQ(verdicts->unseen(List{}).first, nullptr);
}

}  // namespace
}  // namespace llmprof::collect::counters
