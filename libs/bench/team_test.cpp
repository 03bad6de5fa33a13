#include "bench/team.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>
#include <vector>

namespace llmprof::bench {
namespace {

TEST(Team, CoversEveryItemOnce) {
  for (const std::int64_t threads : {1, 2, 3, 5}) {
    const Team team(threads);
    EXPECT_EQ(team.size(), threads);
    for (const std::int64_t count : {1, 2, 7, 100, 1001}) {
      std::vector<std::atomic<int>> seen(static_cast<std::size_t>(count));
      team.each(count, 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) ++seen[static_cast<std::size_t>(i)];
      });
      for (const auto& times : seen) EXPECT_EQ(times, 1);
    }
  }
}

TEST(Team, HandsOutNoPieceUnderTheGrain) {
  const Team team(4);
  std::atomic<int> pieces{0};
  std::atomic<std::int64_t> least{1'000'000};
  const auto look = [&](std::int64_t begin, std::int64_t end) {
    ++pieces;
    for (std::int64_t seen = least; end - begin < seen && !least.compare_exchange_weak(seen, end - begin);) {
    }
  };
  team.each(250, 100, look);  // two pieces of 125; three would be of 83
  EXPECT_EQ(pieces, 2);
  EXPECT_EQ(least, 125);
  pieces = 0;
  team.each(99, 100, look);
  EXPECT_EQ(pieces, 1);
  pieces = 0;
  team.each(0, 100, look);
  EXPECT_EQ(pieces, 0);
}

TEST(Team, ThreadsStay) {
  const Team team(3);
  std::vector<std::thread::id> first(3), later(3);
  const auto note = [&](std::vector<std::thread::id>& ids) {
    team.each(3, 1, [&](std::int64_t begin, std::int64_t) {
      ids[static_cast<std::size_t>(begin)] = std::this_thread::get_id();
    });
  };
  note(first);
  for (int i = 0; i < 1000; ++i) note(later);
  EXPECT_EQ(first, later);
  EXPECT_EQ(std::set(first.begin(), first.end()).size(), 3u);
  EXPECT_EQ(first[0], std::this_thread::get_id());
}

TEST(Team, WakesThreadsThatSleep) {
  const Team team(2);
  std::atomic<int> ran{0};
  for (int i = 0; i < 5; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // longer than it spins
    team.each(2, 1, [&](std::int64_t, std::int64_t) { ++ran; });
  }
  EXPECT_EQ(ran, 10);
}

}  // namespace
}  // namespace llmprof::bench
