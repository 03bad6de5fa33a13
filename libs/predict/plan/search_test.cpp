#include "predict/plan/search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace llmprof::predict::plan {
namespace {

using testing::ElementsAre;

// The counts that are asked for when `truth` is the least that is enough.
struct Asking {
  std::int64_t truth;
  std::vector<std::int64_t> questions = {};
  std::optional<std::int64_t> answer = {};

  Asking& ask(std::int64_t least, std::int64_t most, std::int64_t guess) {
    const auto found = least_count(least, most, guess, [&](std::int64_t count) -> Result<bool> {
      questions.push_back(count);
      return count >= truth;
    });
    EXPECT_TRUE(found);
    answer = *found;
    return *this;
  }
};

TEST(LeastCount, DoublesItsStridesAndThenHalves) {
  Asking up{.truth = 6};
  EXPECT_EQ(up.ask(1, 256, 1).answer, 6);
  EXPECT_THAT(up.questions, ElementsAre(1, 2, 4, 8, 6, 5));
  Asking down{.truth = 6};
  EXPECT_EQ(down.ask(1, 256, 12).answer, 6);
  EXPECT_THAT(down.questions, ElementsAre(12, 11, 9, 5, 7, 6));
}

TEST(LeastCount, AGoodGuessCostsTwoQuestions) {
  Asking asking{.truth = 37};
  EXPECT_EQ(asking.ask(1, 256, 37).answer, 37);
  EXPECT_THAT(asking.questions, ElementsAre(37, 36));
}

TEST(LeastCount, EndsAtItsBounds) {
  EXPECT_EQ(Asking{.truth = 1}.ask(1, 256, 5).answer, 1);
  EXPECT_EQ(Asking{.truth = 1}.ask(4, 256, 4).answer, 4);  // less is not asked for
  EXPECT_EQ(Asking{.truth = 256}.ask(1, 256, 1).answer, 256);
  EXPECT_EQ(Asking{.truth = 257}.ask(1, 256, 1).answer, std::nullopt);
  EXPECT_EQ(Asking{.truth = 2}.ask(1, 1, 9).answer, std::nullopt);
  EXPECT_EQ(Asking{.truth = 1}.ask(3, 2, 1).answer, std::nullopt);
  for (std::int64_t truth = 1; truth <= 20; ++truth) {
    for (std::int64_t guess = 1; guess <= 20; ++guess)
      EXPECT_EQ(Asking{.truth = truth}.ask(1, 20, guess).answer, truth);
  }
}

TEST(LeastCount, ErrorsOfTheQuestionAreReturned) {
  const auto failed = least_count(1, 9, 1, [](std::int64_t) -> Result<bool> {
    return Error{ErrorCode::kInterrupted, "interrupted", ""};
  });
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::kInterrupted);
}

TEST(HighestLoad, IsFoundFromBelow) {
  const auto kept_to = [](double truth) { return [truth](double load) -> Result<bool> { return load <= truth; }; };
  EXPECT_DOUBLE_EQ(*highest_load(64, 0.05, kept_to(1.3)), 1.25);  // 2 no, 1.5 no, 1.25 yes, 1.375 no, 1.3125 no
  for (const double truth : {1.0, 1.9, 3.7, 12.0, 50.0}) {
    const double found = *highest_load(64, 0.05, kept_to(truth));
    EXPECT_LE(found, truth);
    EXPECT_GT(found * 1.0501, truth);
  }
  EXPECT_DOUBLE_EQ(*highest_load(64, 0.05, kept_to(1000)), 64);
}

TEST(Pareto, KeepsWhatNothingBeats) {
  const double unknown = Objectives::kUnknown;
  const std::vector<Objectives> rows{
      {1, 10, 90},            // cheapest
      {2, 20, 50},            // between
      {2, 20, 60},            // beaten by the one before
      {4, 40, 20},            // fastest
      {4, 40, 20},            // equal: kept, too
      {5, 5, 95},             // least energy
      {1, unknown, 90},       // beaten: its energy may be anything
      {unknown, unknown, 10}  // fastest of all, whatever it costs
  };
  EXPECT_THAT(pareto_front(rows), ElementsAre(0, 1, 3, 4, 5, 7));
  EXPECT_THAT(pareto_front({}), ElementsAre());
  EXPECT_FALSE(dominates(rows[3], rows[4]));
  EXPECT_TRUE(dominates(rows[1], rows[2]));
  EXPECT_FALSE(dominates(rows[2], rows[1]));
}

}  // namespace
}  // namespace llmprof::predict::plan
