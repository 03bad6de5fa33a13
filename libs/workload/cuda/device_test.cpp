// The model on a device against the model on the CPU, with the same weights: logits, generated tokens, losses,
// gradients. Linked twice: with the kernels emulated on the CPU (workload_test), and with a GPU
// (tests/gpu/workload.sh).

#include "workload/cuda/device.h"

#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "workload/cuda/device_model.h"
#include "workload/cuda/device_trainer.h"
#include "workload/cuda/testing/test_device.h"
#include "workload/config.h"
#include "workload/train/train.h"

namespace llmprof::workload::cuda {
namespace {

// float32: sums of up to 352 terms in another order, some 1e-7 relative. bfloat16: weights and activations are rounded
// to 8 bits, 2^-9 relative each; some tens of roundings add up to about 1 %.
double tolerance(ElementType type) { return type == ElementType::kFloat32 ? 1e-5 : 3e-2; }

double relative_l2(std::span<const float> actual, std::span<const float> expected) {
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    difference += std::pow(static_cast<double>(actual[i]) - expected[i], 2);
    norm += std::pow(static_cast<double>(expected[i]), 2);
  }
  EXPECT_GT(norm, 0);
  return std::sqrt(difference / norm);
}

ModelConfig llama_of(std::int64_t heads, std::int64_t kv_heads, std::int64_t head_dim, bool tied) {
  return complete({.family = Family::kLlama,
                   .layers = 2,
                   .hidden = 64,
                   .heads = heads,
                   .kv_heads = kv_heads,
                   .head_dim = head_dim,
                   .intermediate = 176,
                   .vocab = 256,
                   .positions = 256,
                   .tied_embeddings = tied})
      .value();
}

struct Case {
  const char* name;
  ModelConfig config;
  std::int64_t batch, prompt;
};

// The prompts end inside a tile of 32 queries, at its edge, and beyond the 128 keys of a decode block.
const Case kCases[] = {
    {"gpt2", gpt2_config(2, 64, 4, 256, 64), 2, 19},
    {"grouped", llama_of(4, 2, 16, false), 2, 32},
    {"plain_wide_heads", llama_of(2, 2, 104, true), 1, 7},
    {"long_context", llama_of(1, 1, 32, true), 1, 126},
};

class DeviceTest : public testing::TestWithParam<std::tuple<Case, ElementType, Decode>> {
 protected:
  const Case& of() const { return std::get<0>(param_); }
  ElementType type() const { return std::get<1>(param_); }
  std::unique_ptr<DeviceRunner> runner(const GenerateOptions& options, Decode decode) {
    DeviceWeights weights(*device_, of().config, type());
    weights.upload(Weights::random(of().config, 1, pool_));
    return std::make_unique<DeviceRunner>(
        *device_, make_device_model(of().config, std::move(weights), *device_, options), options, decode);
  }

  std::tuple<Case, ElementType, Decode> param_ = GetParam();
  std::shared_ptr<Device> device_ = test_device();
  ThreadPool pool_{2};
  std::unique_ptr<Model> cpu_ = make_model(of().config, Weights::random(of().config, 1, pool_), pool_);
};

std::string test_name(const testing::TestParamInfo<std::tuple<Case, ElementType, Decode>>& info) {
  const bool graph = std::get<2>(info.param) == Decode::kGraph;
  return std::string(std::get<0>(info.param).name) + "_" + std::string(name_of(std::get<1>(info.param))) +
         (graph ? "_graph" : "_launches");
}

INSTANTIATE_TEST_SUITE_P(Families, DeviceTest,
                         testing::Combine(testing::ValuesIn(kCases),
                                          testing::Values(ElementType::kFloat32, ElementType::kBfloat16),
                                          testing::Values(Decode::kLaunches, Decode::kGraph)),
                         test_name);

// The same tokens are given to both, so that bfloat16's other choices do not matter.
TEST_P(DeviceTest, LogitsOfPrefillAndDecodeEqualTheCpus) {
  constexpr std::int64_t kNew = 4;
  const GenerateOptions options{.batch = of().batch, .prompt_tokens = of().prompt, .new_tokens = kNew};
  const auto runner = this->runner(options, std::get<2>(param_));
  std::vector<Token> tokens = random_prompts(of().config, options);
  ASSERT_TRUE(runner->prepare(tokens));
  KvCache cache(of().config, options.batch, options.prompt_tokens + kNew);
  std::vector<Token> next(static_cast<std::size_t>(options.batch));
  std::vector<float> actual(static_cast<std::size_t>(options.batch * of().config.vocab));
  std::int64_t position = 0;
  for (std::int64_t step = 0; step < kNew; ++step) {
    const std::span<const float> expected = cpu_->forward(tokens, cache);
    ASSERT_TRUE(runner->run(position, tokens, next));
    runner->model().read_logits(actual);
    ASSERT_TRUE(device_->finish());
    EXPECT_LT(relative_l2(actual, expected), tolerance(type())) << "step " << step;
    for (std::size_t i = 0; i < next.size(); ++i) {  // greedy: the likeliest of the device's own logits
      const auto row = std::span<const float>(actual).subspan(i * static_cast<std::size_t>(of().config.vocab),
                                                              static_cast<std::size_t>(of().config.vocab));
      EXPECT_EQ(next[i], sample({}, row, 0, 0));
    }
    position = cache.length();
    tokens = next;
  }
}

// bfloat16 rounds otherwise than the CPU and may choose otherwise, but the same by a graph and by launches.
TEST_P(DeviceTest, GeneratesTheTokensOfTheCpu) {
  for (const Sampler& sampler : {Sampler{}, Sampler{.kind = Sampler::Kind::kTopK, .k = 8, .seed = 3}}) {
    const GenerateOptions options{
        .batch = of().batch, .prompt_tokens = of().prompt, .new_tokens = 4, .sampler = sampler, .prompt_seed = 5};
    const auto runner = this->runner(options, std::get<2>(param_));
    const Result<Generated> generated = generate(*runner, options);
    ASSERT_TRUE(generated) << generated.error().message;
    if (type() == ElementType::kFloat32) {
      EXPECT_EQ(generated->tokens, generate(*cpu_, options).tokens);
    } else if (std::get<2>(param_) == Decode::kGraph) {
      EXPECT_EQ(generated->tokens, generate(*this->runner(options, Decode::kLaunches), options)->tokens);
    }
    EXPECT_EQ(generated->decode.size(), 3U);
  }
}

// Bit for bit where the CPU multiplies and adds in one step; else norm weights and biases may differ in the last bit.
TEST(DeviceWeights, RandomNumbersMadeOnTheDeviceAreTheCpus) {
  const std::shared_ptr<Device> device = test_device();
  ThreadPool pool(2);
  const ModelConfig config = gpt2_config(1, 64, 4, 256, 64);
  for (const Start start : {Start::kRandom, Start::kUntrained}) {
    const Weights expected =
        start == Start::kRandom ? Weights::random(config, 9, pool) : Weights::untrained(config, 9, pool);
    DeviceWeights weights(*device, config, ElementType::kFloat32);
    weights.fill(start, 9);
    Weights actual(config);
    weights.download(actual);
    ASSERT_TRUE(device->finish());
    for (const TensorSpec& spec : expected.specs()) {
      for (std::int64_t i = 0; i < spec.count(); ++i) {
        ASSERT_FLOAT_EQ(actual.tensor(spec.name)[i], expected.tensor(spec.name)[i]) << spec.name << " " << i;
      }
    }
    EXPECT_EQ(weights.parameters(), expected.parameters());
  }
}

// ---- training ----

struct TrainCase {
  ModelConfig config;
  TrainOptions options;
};
const TrainCase kTraining{gpt2_config(2, 48, 4, 256, 32),
                          {.batch = 2, .tokens = 21, .steps = 3, .seed = 1, .optimizer = {.learning_rate = 1e-3}}};

class DeviceTrainerTest : public testing::Test {
 protected:
  DeviceTrainerTest() { device_trainer_.weights().upload(Weights::untrained(kTraining.config, 1, pool_)); }
  std::shared_ptr<Device> device_ = test_device();
  ThreadPool pool_{2};
  Trainer trainer_{kTraining.config, Weights::untrained(kTraining.config, 1, pool_), kTraining.options, pool_};
  DeviceTrainer device_trainer_{kTraining.config, DeviceWeights(*device_, kTraining.config, ElementType::kFloat32),
                                kTraining.options, *device_};
};

// Every gradient to 1e-4 of its tensor's largest: far above rounding, far below a wrong term.
TEST_F(DeviceTrainerTest, EveryGradientEqualsTheCpus) {
  const TrainingBatch data = training_batch(corpus(), kTraining.options.batch, kTraining.options.tokens, 1, 0);
  const double loss = trainer_.forward(data.inputs, data.targets).value();
  ASSERT_TRUE(trainer_.backward());
  const Result<double> device_loss = device_trainer_.forward(data.inputs, data.targets);
  ASSERT_TRUE(device_loss) << device_loss.error().message;
  EXPECT_NEAR(*device_loss, loss, 1e-5);
  ASSERT_TRUE(device_trainer_.backward());
  Weights actual(kTraining.config);
  device_trainer_.gradients().download(actual);
  ASSERT_TRUE(device_->finish());
  for (const TensorSpec& spec : actual.specs()) {
    const float* const expected = trainer_.gradients().tensor(spec.name);
    float largest = 0;
    for (std::int64_t i = 0; i < spec.count(); ++i) largest = std::max(largest, std::abs(expected[i]));
    EXPECT_GT(largest, 0) << spec.name;
    for (std::int64_t i = 0; i < spec.count(); ++i) {
      ASSERT_NEAR(actual.tensor(spec.name)[i], expected[i], 1e-4 * largest) << spec.name << " " << i;
    }
  }
}

TEST_F(DeviceTrainerTest, TheLossesOfSomeStepsAreTheCpus) {
  const auto ignore = [](std::int64_t, const TrainedStep&) {};
  const std::vector<TrainedStep> expected = train(trainer_, kTraining.options, ignore).value();
  const Result<std::vector<TrainedStep>> actual = train(device_trainer_, kTraining.options, ignore);
  ASSERT_TRUE(actual) << actual.error().message;
  ASSERT_EQ(actual->size(), expected.size());
  EXPECT_LT(expected.back().loss, expected.front().loss - 0.1);
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR((*actual)[i].loss, expected[i].loss, 1e-4) << i;
}

TEST(Heads, OfOddSizesAreRefused) {
  EXPECT_TRUE(check_heads(llama_of(2, 2, 128, false)));
  EXPECT_FALSE(check_heads(llama_of(2, 2, 136, false)));
  EXPECT_FALSE(check_heads(llama_of(2, 2, 20, false)));
}

}  // namespace
}  // namespace llmprof::workload::cuda
