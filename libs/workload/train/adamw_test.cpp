#include "workload/train/operators.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace llmprof::workload {
namespace {

// All parameters of a model with their moments, updated slice by slice as the trainer does.
class AdamW {
 public:
  AdamW(const AdamWOptions& options, std::size_t parameters)
      : options_(options), first_(parameters), second_(parameters) {}

  void begin_step() { ++step_; }
  struct Slice {
    std::int64_t offset, count;
    bool decays;
  };
  void update(const Slice& slice, const float* gradients, float* parameters, ThreadPool& pool) {
    const std::int64_t at = slice.offset;
    adamw_update(adamw_step(options_, step_, slice.decays), gradients + at, slice.count, parameters + at,
                 first_.data() + at, second_.data() + at, pool);
  }

 private:
  AdamWOptions options_;
  std::vector<float> first_, second_;
  std::int64_t step_ = 0;
};

constexpr AdamWOptions kOptions{.learning_rate = 0.1, .beta1 = 0.5, .beta2 = 0.75, .epsilon = 0, .weight_decay = 0.2};

// Step 1, gradient 2: m = 0.5·0 + 0.5·2 = 1, corrected 1/(1 - 0.5) = 2; v = 0.25·4 = 1, corrected 1/(1 - 0.75) = 4;
// direction 2/2 = 1. With decay: p = 1 - 0.1·(1 + 0.2·1) = 0.88; without: 0.9.
// Step 2, gradient -1: m = 0.5·1 - 0.5 = 0; v = 0.75·1 + 0.25·1 = 1. Direction 0. With decay: p = 0.88·(1 - 0.02)
// = 0.8624; without: 0.9.
// Step 3, gradient -1: m = 0 - 0.5 = -0.5, corrected by 1 - 0.125 = 0.875: -4/7; v = 0.75 + 0.25 = 1, corrected by
// 1 - 27/64 = 37/64: 64/37, root 8/√37; direction -4/7·√37/8 = -√37/14.
TEST(AdamW, ThreeStepsByHand) {
  ThreadPool pool(1);
  std::vector<float> p{1.0F, 1.0F};
  AdamW optimizer(kOptions, 2);
  const auto step = [&](float gradient) {
    const std::vector<float> gradients(2, gradient);
    optimizer.begin_step();
    optimizer.update({0, 1, true}, gradients.data(), p.data(), pool);
    optimizer.update({1, 1, false}, gradients.data(), p.data(), pool);
  };
  step(2);
  EXPECT_NEAR(p[0], 0.88, 1e-6);
  EXPECT_NEAR(p[1], 0.9, 1e-6);
  step(-1);
  EXPECT_NEAR(p[0], 0.8624, 1e-6);
  EXPECT_NEAR(p[1], 0.9, 1e-6);
  step(-1);
  EXPECT_NEAR(p[0], 0.8624 - 0.1 * (-std::sqrt(37.0) / 14 + 0.2 * 0.8624), 1e-6);
  EXPECT_NEAR(p[1], 0.9 + 0.1 * std::sqrt(37.0) / 14, 1e-6);
}

TEST(AdamW, EpsilonKeepsAParameterWithoutGradientInPlace) {
  ThreadPool pool(1);
  std::vector<float> p{3.0F};
  const std::vector<float> gradient{0.0F};
  AdamW optimizer({.learning_rate = 0.1, .weight_decay = 0}, 1);
  optimizer.begin_step();
  optimizer.update({0, 1, true}, gradient.data(), p.data(), pool);
  EXPECT_EQ(p[0], 3.0F);
}

TEST(AdamW, SlicesAndThreadsGiveTheSameAsOnePiece) {
  constexpr std::int64_t kCount = 100'001;
  std::vector<float> gradients, whole, parts;
  for (std::int64_t i = 0; i < kCount; ++i) gradients.push_back(std::cos(static_cast<float>(i)));
  whole.assign(kCount, 0.5F);
  parts = whole;
  ThreadPool one(1), three(3);
  AdamW first(kOptions, kCount), second(kOptions, kCount);
  for (int step = 0; step < 2; ++step) {
    first.begin_step();
    first.update({0, kCount, true}, gradients.data(), whole.data(), one);
    second.begin_step();
    second.update({0, 77, true}, gradients.data(), parts.data(), three);
    second.update({77, kCount - 77, true}, gradients.data(), parts.data(), three);
  }
  EXPECT_NE(whole[0], whole[2]);  // cos 0 and cos 2 differ in sign
  for (std::size_t i = 0; i < whole.size(); ++i) ASSERT_NEAR(whole[i], parts[i], 1e-6) << i;
}

}  // namespace
}  // namespace llmprof::workload
