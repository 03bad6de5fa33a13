// The whole training step: every gradient against differences of the reference model's loss, and a loss that falls.

#include "workload/train/trainer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "workload/generate.h"
#include "workload/linear.h"
#include "workload/config.h"
#include "workload/testing/reference.h"
#include "workload/train/train.h"

namespace llmprof::workload {
namespace {

constexpr std::int64_t kBatch = 2, kTokens = 5;
const TrainOptions kShape{.batch = kBatch, .tokens = kTokens};
// Small enough for two reference passes per parameter; two layers, so that gradients cross one.
constexpr ModelConfig kSmall = gpt2_config(2, 8, 2, 13, 7);

std::vector<Token> some_tokens(std::uint64_t seed) {
  return random_prompts(kSmall, {.batch = kBatch, .prompt_tokens = kTokens, .prompt_seed = seed});
}

double reference_loss(const Weights& weights, const std::vector<Token>& inputs, const std::vector<Token>& targets) {
  double sum = 0;
  for (std::int64_t b = 0; b < kBatch; ++b) {
    const std::vector<Token> sequence(inputs.begin() + b * kTokens, inputs.begin() + (b + 1) * kTokens);
    const auto logits = reference_logits(
        kSmall, [&](const std::string& name) { return weights.tensor(name); }, sequence);
    for (std::int64_t t = 0; t < kTokens; ++t) {
      double total = 0;
      for (const double logit : logits[t]) total += std::exp(logit);
      sum += std::log(total) - logits[t][targets[b * kTokens + t]];
    }
  }
  return sum / (kBatch * kTokens);
}

class TrainerTest : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Seeds, TrainerTest, testing::Values(1, 2, 3));

// The reference computes in double, so the difference of two losses 2h apart errs by h² (about 1e-6 relative) only. The
// gradients are float32: 1e-4 of the tensor's largest is far above their rounding and far below a wrong term.
TEST_P(TrainerTest, EveryGradientIsTheSlopeOfTheReferenceLoss) {
  const auto seed = static_cast<std::uint64_t>(GetParam());
  const std::vector<Token> inputs = some_tokens(seed), targets = some_tokens(seed + 100);
  ThreadPool pool(2);
  Trainer trainer(kSmall, Weights::random(kSmall, seed, pool), kShape, pool);
  Weights& weights = trainer.weights();
  EXPECT_NEAR(*trainer.forward(inputs, targets), reference_loss(weights, inputs, targets), 1e-5);
  ASSERT_TRUE(trainer.backward());
  for (const TensorSpec& spec : weights.specs()) {
    float* const parameter = weights.tensor(spec.name);
    const float* const gradient = trainer.gradients().tensor(spec.name);
    std::vector<double> slopes;
    double largest = 0;
    for (std::int64_t i = 0; i < spec.count(); ++i) {
      const float before = parameter[i];
      parameter[i] = before + 1e-3F;
      const double high = parameter[i], above = reference_loss(weights, inputs, targets);
      parameter[i] = before - 1e-3F;
      const double low = parameter[i], below = reference_loss(weights, inputs, targets);
      parameter[i] = before;
      slopes.push_back((above - below) / (high - low));  // as far apart as float32 really made them
      largest = std::max(largest, std::abs(slopes.back()));
    }
    EXPECT_GT(largest, 1e-3) << spec.name;
    for (std::int64_t i = 0; i < spec.count(); ++i) {
      EXPECT_NEAR(gradient[i], slopes[i], 1e-4 * largest) << spec.name << " " << i;
    }
  }
}

// wte is read twice: by the lookup and by lm_head. A token that does not occur in the input gets only the latter's
// part.
TEST(Trainer, TheTiedTableGetsBothGradients) {
  ThreadPool pool(1);
  Trainer trainer(kSmall, Weights::random(kSmall, 5, pool), {.batch = 1, .tokens = 2}, pool);
  const std::vector<Token> inputs{3, 4}, targets{4, 5};
  EXPECT_TRUE(trainer.forward(inputs, targets) && trainer.backward());
  const float* const table = trainer.gradients().tensor("wte.weight");
  const float* const positions = trainer.gradients().tensor("wpe.weight");
  // The lookups' parts are the gradients of the positions: one sequence, each position once. What remains of the rows
  // is dlogitsᵀ · normed, and the columns of dlogits sum to 0 over the vocabulary, so that part sums to 0.
  for (std::int64_t i = 0; i < kSmall.hidden; ++i) {
    double rows = 0;
    for (std::int64_t token = 0; token < kSmall.vocab; ++token) rows += table[token * kSmall.hidden + i];
    EXPECT_NEAR(rows, positions[i] + positions[kSmall.hidden + i], 1e-5) << i;
    EXPECT_NE(table[7 * kSmall.hidden + i], 0.0F);
    EXPECT_EQ(positions[2 * kSmall.hidden + i], 0.0F);  // a position that no sequence reaches
  }
}

TEST(Trainer, BackwardTwiceGivesTheSame) {
  ThreadPool pool(2);
  const std::vector<Token> inputs = some_tokens(1), targets = some_tokens(2);
  Trainer trainer(kSmall, Weights::random(kSmall, 1, pool), kShape, pool);
  const auto gradients = [&] {
    EXPECT_TRUE(trainer.forward(inputs, targets) && trainer.backward());
    const float* const all = trainer.gradients().data();
    return std::vector<float>(all, all + trainer.gradients().parameters());
  };
  const std::vector<float> first = gradients();
  EXPECT_EQ(first, gradients());  // replaced, not added up
}

std::vector<double> losses(const TrainOptions& options, std::int64_t threads) {
  const ModelConfig config = find_train_preset("tiny")->config;
  set_blas_threads(threads);
  ThreadPool pool(threads);
  Trainer trainer(config, Weights::untrained(config, options.seed, pool), options, pool);
  std::vector<double> out;
  EXPECT_TRUE(train(trainer, options, [&](std::int64_t, const TrainedStep& step) { out.push_back(step.loss); }));
  return out;
}

// An untrained model finds all 256 bytes equally likely: ln 256 = 5.545. The text uses about 60 of them, ln 60 = 4.1,
// and letters are not equally frequent: about 3 nats are left without any context. Eight seeds were tried: 3.1 at most.
TEST(Train, TheLossFallsOnTheCorpus) {
  const std::vector<double> found =
      losses({.batch = 4, .tokens = 32, .steps = 60, .seed = 1, .optimizer = {.learning_rate = 1e-3}}, 2);
  ASSERT_EQ(found.size(), 60U);
  EXPECT_NEAR(found.front(), std::log(256.0), 0.1);
  double last = 0;
  for (std::size_t i = 50; i < 60; ++i) last += found[i] / 10;
  EXPECT_LT(last, 3.5);
}

TEST(Train, TheSameSeedGivesTheSameLosses) {
  const TrainOptions options{.batch = 4, .tokens = 32, .steps = 8, .seed = 3, .optimizer = {.learning_rate = 1e-3}};
  const std::vector<double> first = losses(options, 2);
  EXPECT_EQ(first, losses(options, 2));
  TrainOptions other = options;
  other.seed = 4;
  EXPECT_NE(first, losses(other, 2));
  // More threads round the products differently; eight steps let that grow a little.
  for (const std::int64_t threads : {1, 3}) {
    const std::vector<double> again = losses(options, threads);
    for (std::size_t i = 0; i < first.size(); ++i) EXPECT_NEAR(again[i], first[i], 1e-3) << threads << " " << i;
  }
}

TEST(Train, ALearningRateOfZeroLearnsNothing) {
  // Without an update a step sees the same untrained model: all losses stay near ln 256.
  for (const double loss : losses({.batch = 4, .tokens = 32, .steps = 5, .optimizer = {.learning_rate = 0}}, 1)) {
    EXPECT_NEAR(loss, std::log(256.0), 0.1);
  }
}

TEST(Corpus, BatchesAreTheTextAndItsNextBytes) {
  const std::string_view text = corpus();
  EXPECT_GT(text.size(), 10'000U);
  const TrainingBatch batch = training_batch(text, 3, 16, 7, 2);
  ASSERT_EQ(batch.inputs.size(), 48U);
  for (std::size_t b = 0; b < 3; ++b) {
    std::string read;
    for (std::size_t t = 0; t < 16; ++t) read.push_back(static_cast<char>(batch.inputs[b * 16 + t]));
    read.push_back(static_cast<char>(batch.targets[b * 16 + 15]));
    EXPECT_NE(text.find(read), std::string_view::npos) << read;
    for (std::size_t t = 1; t < 16; ++t) EXPECT_EQ(batch.targets[b * 16 + t - 1], batch.inputs[b * 16 + t]);
  }
  EXPECT_NE(batch.inputs, training_batch(text, 3, 16, 7, 3).inputs);
  EXPECT_EQ(batch.inputs, training_batch(text, 3, 16, 7, 2).inputs);
  EXPECT_EQ(training_batch("abc", 1, 2, 0, 0).inputs, (std::vector<Token>{'a', 'b'}));  // the only place
}

TEST(CheckTraining, RefusesWhatCannotBeDone) {
  const ModelConfig config = find_train_preset("tiny")->config;
  EXPECT_TRUE(check_training(config, {.tokens = 64}));
  EXPECT_FALSE(check_training(config, {.tokens = 65}));  // positions
  EXPECT_FALSE(check_training(config, {.batch = 0}));
  EXPECT_FALSE(check_training(config, {.steps = 0}));
  EXPECT_FALSE(check_training(gpt2_config(2, 64, 4, 255, 64), {}));  // no room for all bytes
  EXPECT_FALSE(check_training(find_preset("tiny-llama")->config, {}));
  // 4096 layers x 65536 sequences x 4096 heads x 12000² scores are 1.6e20 values: more than 64 bits can count bytes of.
  EXPECT_FALSE(check_training(gpt2_config(4096, 4096, 4096, 256, 12000), {.batch = 65536, .tokens = 12000}));
  EXPECT_FALSE(check_training(config, {.optimizer = {.learning_rate = NAN}}));
  EXPECT_FALSE(check_training(config, {.optimizer = {.beta2 = 1}}));
}

TEST(TrainPresets, TheNamedOnesPassTheirChecks) {
  for (const TrainPreset& preset : train_presets()) {
    const auto config = complete(preset.config);
    ASSERT_TRUE(config) << preset.name;
    EXPECT_TRUE(check_training(*config, {.batch = preset.batch, .tokens = preset.tokens, .steps = preset.steps}));
  }
  const TrainPreset gpt2 = *find_train_preset("gpt2");
  EXPECT_EQ(Weights(gpt2.config).parameters(), 124'439'808);
  EXPECT_EQ(gpt2.batch, 4);
  EXPECT_EQ(gpt2.tokens, 64);
  EXPECT_EQ(gpt2.steps, 40);
  EXPECT_FALSE(find_train_preset("nonsense"));
}

}  // namespace
}  // namespace llmprof::workload
