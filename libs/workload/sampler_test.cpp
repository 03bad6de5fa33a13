#include "workload/generate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <vector>

namespace llmprof::workload {
namespace {

TEST(Sampler, GreedyTakesTheLargestAndTheFirstOfEquals) {
  const std::vector<float> logits{0.5F, 2.0F, -1.0F, 2.0F};
  EXPECT_EQ(sample({}, logits, 0, 0), 1);
}

TEST(Sampler, TopKDrawsOnlyFromTheKLargestInProportion) {
  // e^0 : e^-1 = 0.731 : 0.269 among the two largest; the others never.
  const std::vector<float> logits{-3.0F, 0.0F, -1.0F, -2.0F};
  const Sampler sampler{.kind = Sampler::Kind::kTopK, .k = 2, .seed = 42};
  std::map<Token, int> counts;
  for (std::int64_t position = 0; position < 10'000; ++position) ++counts[sample(sampler, logits, 0, position)];
  EXPECT_EQ(counts.size(), 2U);
  EXPECT_NEAR(counts[1], 7311, 250);  // 5 standard deviations of sqrt(10000 x 0.73 x 0.27) = 44
  EXPECT_NEAR(counts[2], 2689, 250);
}

TEST(Sampler, SameSeedSameDrawsOtherSeedOrSequenceOthers) {
  const std::vector<float> logits(1000, 0.0F);
  const auto draws = [&](std::uint64_t seed, std::int64_t sequence) {
    std::vector<Token> tokens;
    for (std::int64_t position = 0; position < 20; ++position) {
      tokens.push_back(sample({.kind = Sampler::Kind::kTopK, .k = 1000, .seed = seed}, logits, sequence, position));
    }
    return tokens;
  };
  EXPECT_EQ(draws(1, 0), draws(1, 0));
  EXPECT_NE(draws(1, 0), draws(2, 0));
  EXPECT_NE(draws(1, 0), draws(1, 1));
}

TEST(Sampler, KOfOneIsGreedyAndKBeyondTheVocabularyIsAllOfIt) {
  const std::vector<float> logits{0.0F, 1.0F, 0.5F};
  for (std::int64_t position = 0; position < 50; ++position) {
    EXPECT_EQ(sample({.kind = Sampler::Kind::kTopK, .k = 1}, logits, 0, position), 1);
    const Token token = sample({.kind = Sampler::Kind::kTopK, .k = 99}, logits, 0, position);
    EXPECT_TRUE(token >= 0 && token < 3);
  }
}

TEST(Sampler, NanIsNeverDrawn) {
  const std::vector<float> logits{std::numeric_limits<float>::quiet_NaN(), 1.0F, 0.5F};
  for (std::int64_t position = 0; position < 50; ++position) {
    EXPECT_NE(sample({.kind = Sampler::Kind::kTopK, .k = 2}, logits, 0, position), 0);
  }
}

}  // namespace
}  // namespace llmprof::workload
