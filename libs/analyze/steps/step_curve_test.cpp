#include <gtest/gtest.h>

#include "analyze/steps/step_curve.h"

namespace llmprof::analyze {

namespace {

StepCurve numbered(std::vector<std::int64_t> durations) {
  StepCurve curve{.stage = "decode", .steps = std::ssize(durations)};
  for (std::int64_t i = 0; i < std::ssize(durations); ++i) {
    curve.begin_ns.push_back(100 * i);
    curve.batch.push_back(i);
    curve.context.push_back(10 * i);
  }
  curve.duration_ns = std::move(durations);
  return curve;
}

TEST(StepCurve, ThinningKeepsTheLongestOfEachPieceWithItsOwnBatch) {
  // Seven steps in three pieces: 0-1, 2-3, 4-6; the longest are the steps 1, 2 and 5.
  StepCurve curve = numbered({1, 9, 8, 3, 2, 7, 7});
  thin(curve, 3);
  EXPECT_EQ(curve.duration_ns, (std::vector<std::int64_t>{9, 8, 7}));
  EXPECT_EQ(curve.begin_ns, (std::vector<std::int64_t>{100, 200, 500}));
  EXPECT_EQ(curve.batch, (std::vector<std::int64_t>{1, 2, 5}));
  EXPECT_EQ(curve.context, (std::vector<std::int64_t>{10, 20, 50}));
  EXPECT_EQ(curve.steps, 7);
}

TEST(StepCurve, FewStepsStayAsTheyAre) {
  StepCurve curve = numbered({3, 1, 2});
  thin(curve, 3);
  EXPECT_EQ(curve.duration_ns, (std::vector<std::int64_t>{3, 1, 2}));
}

}  // namespace

}  // namespace llmprof::analyze
