#include "analyze/passes/graphs.h"

#include <gtest/gtest.h>

namespace llmprof::analyze {
namespace {

TEST(EagerTimes, OfTheSameSequence) {
  // 1 2 1 3 twice, something else around it. A kernel of name 1 takes 10 or 30 depending on its place.
  const EagerKernels kernels{{1, 1, 2, 1, 3, 9, 1, 2, 1, 3, 1}, {5, 10, 20, 30, 40, 99, 14, 20, 30, 44, 7}};
  const EagerTimes times = eager_times({1, 2, 1, 3}, kernels);
  EXPECT_EQ(times.sequences, 2);
  EXPECT_EQ(times.known, 1);
  EXPECT_EQ(times.duration_ns, (std::vector<double>{12, 20, 30, 42}));
}

TEST(EagerTimes, AMatchMayBeginInsideAFailedOne) {
  const EagerKernels kernels{{1, 1, 1, 2}, {1, 2, 3, 4}};
  EXPECT_EQ(eager_times({1, 1, 2}, kernels).duration_ns, (std::vector<double>{2, 3, 4}));
}

TEST(EagerTimes, OfKernelsOfTheSameNameElse) {
  const EagerKernels kernels{{1, 2, 1}, {10, 20, 30}};
  const EagerTimes times = eager_times({2, 1, 7, 7}, kernels);
  EXPECT_EQ(times.sequences, 0);
  EXPECT_EQ(times.known, 0.5);
  EXPECT_EQ(times.duration_ns, (std::vector<double>{20, 20, 0, 0}));
}

TEST(EagerTimes, OnlyTheLastRunsCount) {
  EagerKernels kernels;
  for (std::int64_t run = 0; run < 20; ++run) {
    kernels.name.push_back(1);
    kernels.duration_ns.push_back(run < 12 ? 1000 : 10);
  }
  EXPECT_EQ(eager_times({1}, kernels).sequences, 8);
  EXPECT_EQ(eager_times({1}, kernels).duration_ns, std::vector<double>{10});
  EXPECT_TRUE(eager_times({}, kernels).duration_ns.empty());
}

}  // namespace
}  // namespace llmprof::analyze
