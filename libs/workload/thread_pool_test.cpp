#include "workload/thread_pool.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace llmprof::workload {
namespace {

TEST(ThreadPool, EveryItemIsVisitedOnceRoundAfterRound) {
  ThreadPool pool(4);
  std::vector<int> visits(1003, 0);
  for (int round = 0; round < 500; ++round) {
    pool.parallel_for(1003, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) ++visits[static_cast<std::size_t>(i)];
    });
  }
  for (const int count : visits) ASSERT_EQ(count, 500);
}

TEST(ThreadPool, SmallWorkStaysOnTheCaller) {
  ThreadPool pool(4);
  const auto caller = std::this_thread::get_id();
  int calls = 0;
  pool.parallel_for(10, 6, [&](std::int64_t begin, std::int64_t end) {  // 10 < 2 x 6: one part
    EXPECT_EQ(std::this_thread::get_id(), caller);
    EXPECT_EQ(end - begin, 10);
    ++calls;
  });
  EXPECT_EQ(calls, 1);
  pool.parallel_for(0, 1, [&](std::int64_t, std::int64_t) { ++calls; });
  EXPECT_EQ(calls, 1);
}

TEST(ThreadPool, PartsAreAtLeastAsLargeAsAsked) {
  ThreadPool pool(4);
  std::vector<std::int64_t> sizes(10, 0);  // by begin: each part writes its own element
  pool.parallel_for(
      10, 3, [&](std::int64_t begin, std::int64_t end) { sizes[static_cast<std::size_t>(begin)] = end - begin; });
  std::erase(sizes, 0);
  EXPECT_EQ(sizes.size(), 3U);  // 10 / 3
  EXPECT_EQ(std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}), 10);
  for (const std::int64_t size : sizes) EXPECT_GE(size, 3);
}

}  // namespace
}  // namespace llmprof::workload
