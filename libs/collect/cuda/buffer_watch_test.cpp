#include "collect/cuda/buffers.h"

#include <gtest/gtest.h>

namespace llmprof::collect {
namespace {

using Verdict = BufferWatch::Verdict;

class Watched {
 public:
  // One period: whether something was launched, and whether buffers moved.
  Verdict period(bool launched, bool moved) {
    now_ += 250;
    moves_ += moved ? 1 : 0;
    return watch.look({launched, moves_, moves_, now_});
  }
  void suspect() {
    period(true, true);
    period(true, false);
    period(true, false);
    EXPECT_EQ(period(true, false), Verdict::kSuspected);
  }
  BufferWatch watch;

 private:
  std::uint64_t now_ = 0;
  std::uint32_t moves_ = 0;
};

TEST(BufferWatch, LaunchesWithoutBuffersForMoreThanTwoPeriods) {
  Watched watched;
  EXPECT_EQ(watched.period(true, true), Verdict::kNone);  // at 250
  EXPECT_EQ(watched.period(true, false), Verdict::kNone);
  EXPECT_EQ(watched.period(true, false), Verdict::kNone);
  EXPECT_FALSE(watched.watch.suspects());
  EXPECT_EQ(watched.period(true, false), Verdict::kSuspected);
  EXPECT_TRUE(watched.watch.suspects());
  EXPECT_EQ(watched.watch.since_ns(), 250u);  // when buffers moved last
}

TEST(BufferWatch, NoLaunchesNoTheft) {
  Watched watched;
  watched.period(true, true);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(watched.period(false, false), Verdict::kNone);
}

TEST(BufferWatch, AFewLaunchesAndThenNothingForLong) {
  Watched watched;
  watched.period(true, true);
  watched.period(true, false);
  for (int i = 0; i < 7; ++i) EXPECT_EQ(watched.period(false, false), Verdict::kNone);
  EXPECT_EQ(watched.period(false, false), Verdict::kTaken);  // quiet for twice 4
  EXPECT_EQ(watched.watch.since_ns(), 250u);
}

TEST(BufferWatch, WorkThatIsAlwaysInFlightClearsItself) {
  Watched watched;
  watched.suspect();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(watched.period(true, false), Verdict::kNone);
  EXPECT_EQ(watched.period(false, true), Verdict::kCleared);  // the device has caught up
  EXPECT_EQ(watched.period(false, false), Verdict::kNone);
}

TEST(BufferWatch, TakenBackWhenQuietWithMorePatienceEachTime) {
  Watched watched;
  watched.suspect();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(watched.period(true, false), Verdict::kNone);  // its session goes on
  for (int i = 0; i < 3; ++i) EXPECT_EQ(watched.period(false, false), Verdict::kNone);
  EXPECT_EQ(watched.period(false, false), Verdict::kTaken);  // quiet for 4
  EXPECT_FALSE(watched.watch.suspects());
  watched.suspect();
  for (int i = 0; i < 7; ++i) EXPECT_EQ(watched.period(false, false), Verdict::kNone);
  EXPECT_EQ(watched.period(false, false), Verdict::kTaken);  // for 8
}

}  // namespace
}  // namespace llmprof::collect
