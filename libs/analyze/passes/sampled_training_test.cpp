#include "analyze/steps/sampled_loops.h"

#include <gtest/gtest.h>

#include <string>

namespace llmprof::analyze {
namespace {

constexpr std::int64_t kPeriod = 10'000'000;

LoopPart part_of(char letter) {
  switch (letter) {
    case 'F':
      return LoopPart::kForward;
    case 'B':
      return LoopPart::kBackward;
    case 'U':
      return LoopPart::kOptimizer;
    case 'V':
      return LoopPart::kForwardOnly;
    default:
      return LoopPart::kNothing;
  }
}

// One letter a sample.
std::vector<LoopSample> samples(const std::string& letters) {
  std::vector<LoopSample> out;
  for (const char letter : letters)
    out.push_back({static_cast<std::int64_t>(out.size() + 1) * kPeriod, kPeriod, part_of(letter)});
  return out;
}

std::string repeat(const std::string& text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

std::optional<std::int64_t> counted(const SampledLoop& loop, LoopPart part) {
  return loop.counted[static_cast<std::size_t>(part)];
}

TEST(SampledTraining, NamesOfFunctions) {
  const auto says = [](std::string_view name) { return loop_part(name, {}); };
  EXPECT_EQ(says("gpt2_forward"), LoopPart::kForward);
  EXPECT_EQ(says("nn::gpt2::GPT2::ForwardCPU"), LoopPart::kForward);
  EXPECT_EQ(says("gpt2_backward"), LoopPart::kBackward);
  EXPECT_EQ(says("layernorm_backward"), LoopPart::kBackward);
  EXPECT_EQ(says("gpt2_update"), LoopPart::kOptimizer);
  EXPECT_EQ(says("optim::AdamW::Step"), LoopPart::kOptimizer);
  EXPECT_EQ(says("evaluate"), LoopPart::kForwardOnly);
  EXPECT_EQ(says("main"), LoopPart::kNothing);
  EXPECT_EQ(says("std::forward"), LoopPart::kNothing);
  EXPECT_EQ(says("std::copy_backward"), LoopPart::kNothing);
  EXPECT_EQ(says("train_step"), LoopPart::kNothing);  // holds the passes
}

TEST(SampledTraining, CountsPassesThatLastSeveralSamples) {
  std::vector<LoopSample> all = samples(repeat("FFFBBBBBUU", 40));
  const auto loop = find_loop(all);
  ASSERT_TRUE(loop);
  EXPECT_TRUE(loop->countable);
  EXPECT_EQ(loop->changes, 40);
  for (const LoopPart part : {LoopPart::kForward, LoopPart::kBackward, LoopPart::kOptimizer})
    EXPECT_EQ(counted(*loop, part), 40);
  ASSERT_EQ(loop->passes.size(), 120u);
  EXPECT_EQ(loop->passes[1].begin_ns, loop->passes[0].end_ns);
  EXPECT_EQ(loop->passes[1].end_ns - loop->passes[1].begin_ns, 5 * kPeriod);
}

TEST(SampledTraining, DoesNotCountWhatFallsBetweenSamples) {
  std::vector<LoopSample> all = samples(repeat("FBBBFBB", 30));  // a forward pass of about one sample
  const auto loop = find_loop(all);
  ASSERT_TRUE(loop);
  EXPECT_FALSE(loop->countable);
  EXPECT_FALSE(counted(*loop, LoopPart::kForward));
  // The update is too short: how often it is made is not known, how often the others are is.
  all = samples(repeat("FFFBBBFFFBBBU", 30));
  const auto second = find_loop(all);
  ASSERT_TRUE(second);
  EXPECT_EQ(counted(*second, LoopPart::kForward), 60);
  EXPECT_FALSE(counted(*second, LoopPart::kOptimizer));
  EXPECT_FALSE(second->countable);
}

TEST(SampledTraining, TwoPassesThatNothingSeparatesAreNotOne) {
  std::vector<LoopSample> all = samples(repeat("FFFBBBFFFBBBBBB", 20));  // every other forward pass is not there
  const auto loop = find_loop(all);
  ASSERT_TRUE(loop);
  EXPECT_FALSE(loop->countable);
}

TEST(SampledTraining, ForwardPassesThatNothingIsLearnedFrom) {
  std::string letters;
  for (int step = 0; step < 40; ++step) letters += (step % 10 == 0 ? repeat("FFF", 5) : "") + "FFFBBBBB";
  letters += "FFFFFF";
  std::vector<LoopSample> all = samples(letters);
  const auto loop = find_loop(all);
  ASSERT_TRUE(loop);
  EXPECT_TRUE(loop->countable);
  EXPECT_EQ(counted(*loop, LoopPart::kForward), 40);
  EXPECT_FALSE(counted(*loop, LoopPart::kForwardOnly));  // how many passes these are is not known
  EXPECT_EQ(std::count_if(all.begin(), all.end(), [](const auto& s) { return s.part == LoopPart::kForwardOnly; }),
            4 * 15 + 6);
}

TEST(SampledTraining, APassThatWasDisturbedIsNoValidation) {
  std::vector<LoopSample> all = samples(repeat("FFBBBBUU", 20) + "FFFFFBBBBUU" + repeat("FFBBBBUU", 20));
  const auto loop = find_loop(all);
  ASSERT_TRUE(loop);
  EXPECT_EQ(counted(*loop, LoopPart::kForward), 41);
  EXPECT_EQ(std::count_if(all.begin(), all.end(), [](const auto& s) { return s.part == LoopPart::kForwardOnly; }), 0);
}

TEST(SampledTraining, NothingFromAHandful) {
  for (const char* letters : {"", "FFFFBBBBU", "FFFFFFFFFFFFFFFFFFFFFFFFFFFF"}) {
    std::vector<LoopSample> all = samples(letters);
    EXPECT_FALSE(find_loop(all)) << letters;
  }
  std::vector<LoopSample> once = samples(repeat("F", 50) + repeat("B", 50));  // do not alternate
  EXPECT_FALSE(find_loop(once));
}

TEST(SampledTraining, GradientAccumulation) {
  std::vector<LoopSample> all = samples(repeat("FFBBBFFBBBUUU", 20));
  const auto loop = find_loop(all);
  ASSERT_TRUE(loop);
  EXPECT_EQ(counted(*loop, LoopPart::kForward), 40);
  EXPECT_EQ(counted(*loop, LoopPart::kOptimizer), 20);
}

}  // namespace
}  // namespace llmprof::analyze
