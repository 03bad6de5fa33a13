#include "collect/cuda/theft.h"

#include <gtest/gtest.h>

namespace llmprof::collect {
namespace {

using Verdict = TheftWatch::Verdict;

class Watched {
 public:
  // One period: whether something was launched, and whether buffers moved.
  Verdict period(bool launched, bool moved, std::uint32_t lent = 0) {
    now_ += 250;
    moves_ += moved ? 1 : 0;
    return watch.look({launched, moves_, moves_, lent, now_});
  }
  TheftWatch watch;

 private:
  std::uint64_t now_ = 0;
  std::uint32_t moves_ = 0;
};

TEST(Theft, LaunchesWithoutBuffersForMoreThanTwoPeriods) {
  Watched watched;
  EXPECT_EQ(watched.period(true, true), Verdict::kNone);  // at 250
  EXPECT_EQ(watched.period(true, false), Verdict::kNone);
  EXPECT_EQ(watched.period(true, false), Verdict::kNone);
  EXPECT_EQ(watched.period(true, false), Verdict::kTaken);
  EXPECT_EQ(watched.watch.gap_begin_ns(), 250u);  // when buffers moved last
}

TEST(Theft, NoLaunchesNoTheft) {
  Watched watched;
  watched.period(true, true);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(watched.period(false, false), Verdict::kNone);
}

TEST(Theft, ABufferMayWaitForALongKernel) {
  Watched watched;
  watched.period(true, true, 1);
  for (int i = 0; i < 16; ++i) EXPECT_EQ(watched.period(true, false, 1), Verdict::kNone) << i;
  EXPECT_EQ(watched.period(true, false, 1), Verdict::kTaken);
}

TEST(Theft, ResumedWhenQuietWithMorePatienceEachTime) {
  Watched watched;
  watched.period(true, true);
  for (int i = 0; i < 3; ++i) watched.period(true, false);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(watched.period(true, false), Verdict::kNone);  // its session goes on
  EXPECT_EQ(watched.period(false, false), Verdict::kResume);
  watched.period(true, true);
  for (int i = 0; i < 2; ++i) watched.period(true, false);
  EXPECT_EQ(watched.period(true, false), Verdict::kTaken);
  for (int i = 0; i < 7; ++i) EXPECT_EQ(watched.period(false, false), Verdict::kNone);  // 4, doubled
  EXPECT_EQ(watched.period(false, false), Verdict::kResume);
}

TEST(Theft, BuffersThatMoveAgainEndIt) {
  Watched watched;
  watched.period(true, true);
  for (int i = 0; i < 3; ++i) watched.period(true, false);
  EXPECT_EQ(watched.period(true, true), Verdict::kResume);
}

}  // namespace
}  // namespace llmprof::collect
