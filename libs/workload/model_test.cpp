// The fast transformers against the reference, and against themselves where two ways must give the same.

#include "workload/model.h"

#include <gtest/gtest.h>

#include <cmath>

#include "workload/generate.h"
#include "workload/config.h"
#include "workload/testing/reference.h"

namespace llmprof::workload {
namespace {

// float32 with sums of up to 344 terms: rounding errors of some 1e-7 relative; 1e-5 is far above noise and far below
// any mistake in a formula.
constexpr double kTolerance = 1e-5;

template <class A, class B>
double relative_l2(const A& actual, const B& expected) {
  EXPECT_EQ(std::size(actual), std::size(expected));
  double difference = 0;
  double norm = 0;
  for (std::size_t i = 0; i < std::size(expected); ++i) {
    difference += (actual[i] - expected[i]) * (actual[i] - expected[i]);
    norm += static_cast<double>(expected[i]) * expected[i];
  }
  EXPECT_GT(norm, 0);
  return std::sqrt(difference / norm);
}

ModelConfig llama_config(std::int64_t heads, std::int64_t kv_heads, bool tied = false) {
  ModelConfig config{.family = Family::kLlama,
                     .layers = 3,
                     .hidden = 96,
                     .heads = heads,
                     .kv_heads = kv_heads,
                     .intermediate = 176,
                     .vocab = 211,
                     .positions = 64,
                     .tied_embeddings = tied};
  return complete(config).value();
}

ModelConfig gpt2_config() {
  return complete({.family = Family::kGpt2, .layers = 3, .hidden = 96, .heads = 6, .vocab = 211, .positions = 64})
      .value();
}

std::vector<Token> tokens_of(const ModelConfig& config, std::int64_t count, std::uint64_t seed = 7) {
  return random_prompts(config, {.batch = 1, .prompt_tokens = count, .prompt_seed = seed});
}

class ModelTest : public testing::TestWithParam<ModelConfig> {
 protected:
  static std::vector<float> forward(Model& model, const std::vector<Token>& tokens, KvCache& cache) {
    const std::span<const float> logits = model.forward(tokens, cache);
    return {logits.begin(), logits.end()};
  }

  ModelConfig config_ = GetParam();
  ThreadPool pool_{2};
  Weights weights_ = Weights::random(config_, 1, pool_);
  std::unique_ptr<Model> model_ = make_model(config_, Weights::random(config_, 1, pool_), pool_);
};

INSTANTIATE_TEST_SUITE_P(Families, ModelTest,
                         testing::Values(gpt2_config(), llama_config(6, 2), llama_config(6, 6),
                                         llama_config(6, 1, true)));

TEST_P(ModelTest, LogitsEqualTheReferenceAtEveryLength) {
  const std::vector<Token> tokens = tokens_of(config_, 20);
  const auto expected = reference_logits(
      config_, [&](const std::string& name) { return weights_.tensor(name); }, tokens);
  for (const std::size_t length : {1, 2, 5, 11, 20}) {
    KvCache cache(config_, 1, 20);
    const std::vector<Token> prefix(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(length));
    EXPECT_LT(relative_l2(forward(*model_, prefix, cache), expected[length - 1]), kTolerance) << length;
  }
}

TEST_P(ModelTest, DecodeWithCacheEqualsFullForwardAtEveryPosition) {
  const std::vector<Token> tokens = tokens_of(config_, 24);
  KvCache cache(config_, 1, 24);
  for (std::size_t position = 0; position < tokens.size(); ++position) {
    const std::vector<float> decoded = forward(*model_, {tokens[position]}, cache);
    KvCache fresh(config_, 1, 24);
    const std::vector<Token> prefix(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(position) + 1);
    EXPECT_LT(relative_l2(decoded, forward(*model_, prefix, fresh)), kTolerance) << position;
  }
}

TEST_P(ModelTest, PrefillInTwoPartsEqualsOne) {
  const std::vector<Token> tokens = tokens_of(config_, 20);
  KvCache whole(config_, 1, 20);
  const std::vector<float> expected = forward(*model_, tokens, whole);
  KvCache parts(config_, 1, 20);
  forward(*model_, {tokens.begin(), tokens.begin() + 9}, parts);
  EXPECT_LT(relative_l2(forward(*model_, {tokens.begin() + 9, tokens.end()}, parts), expected), kTolerance);
}

TEST_P(ModelTest, BatchOfTwoEqualsTwoBatchesOfOne) {
  const std::vector<Token> first = tokens_of(config_, 12, 1);
  const std::vector<Token> second = tokens_of(config_, 12, 2);
  std::vector<Token> both = first;
  both.insert(both.end(), second.begin(), second.end());
  KvCache cache_both(config_, 2, 16), cache_first(config_, 1, 16), cache_second(config_, 1, 16);
  std::vector<float> expected = forward(*model_, first, cache_first);
  std::vector<float> other = forward(*model_, second, cache_second);
  expected.insert(expected.end(), other.begin(), other.end());
  EXPECT_LT(relative_l2(forward(*model_, both, cache_both), expected), kTolerance);
  // and one decode step after it
  expected = forward(*model_, {3}, cache_first);
  other = forward(*model_, {5}, cache_second);
  expected.insert(expected.end(), other.begin(), other.end());
  EXPECT_LT(relative_l2(forward(*model_, {3, 5}, cache_both), expected), kTolerance);
}

TEST_P(ModelTest, OneAndThreeThreadsGenerateTheSameTokens) {
  const GenerateOptions options{.batch = 2, .prompt_tokens = 17, .new_tokens = 20};
  const auto tokens_with = [&](std::int64_t threads) {
    set_blas_threads(threads);
    ThreadPool pool(threads);
    const auto model = make_model(config_, Weights::random(config_, 1, pool), pool);
    return generate(*model, options).tokens;
  };
  const auto one = tokens_with(1);
  EXPECT_EQ(one, tokens_with(3));
  EXPECT_EQ(one.size(), 2U);
  EXPECT_EQ(one[0].size(), 20U);
  EXPECT_NE(one[0], one[1]);
}

// Grouped heads are plain heads whose key and value projections repeat: copying each group's rows for every query head
// must give the same logits.
TEST(Attention, GroupedHeadsEqualPlainHeadsWithRepeatedProjections) {
  ThreadPool pool(2);
  const ModelConfig grouped = llama_config(6, 2);
  const ModelConfig plain = llama_config(6, 6);
  Weights few = Weights::random(grouped, 1, pool);
  Weights many(plain);
  for (const TensorSpec& spec : many.specs()) {
    const bool repeated =
        spec.name.find("k_proj") != std::string::npos || spec.name.find("v_proj") != std::string::npos;
    const std::int64_t head_values = grouped.head_dim * grouped.hidden;
    for (std::int64_t i = 0; i < spec.count(); ++i) {
      const std::int64_t head = i / head_values;  // of 6, three share one of the 2
      const std::int64_t from = repeated ? head / 3 * head_values + i % head_values : i;
      many.tensor(spec.name)[i] = few.tensor(spec.name)[from];
    }
  }
  const std::vector<Token> tokens = tokens_of(grouped, 16);
  const auto few_model = make_model(grouped, std::move(few), pool);
  const auto many_model = make_model(plain, std::move(many), pool);
  KvCache few_cache(grouped, 1, 16), many_cache(plain, 1, 16);
  EXPECT_LT(relative_l2(few_model->forward(tokens, few_cache), many_model->forward(tokens, many_cache)), kTolerance);
}

TEST(Weights, ParameterCountsArePublishedOnes) {
  // GPT-2 small: 124,439,808 (published, tied head once). TinyLlama 1.1B: 1,100,048,384.
  const auto count = [](std::string_view preset) {
    std::int64_t sum = 0;
    for (const TensorSpec& spec : tensor_specs(find_preset(preset)->config)) sum += spec.count();
    return sum;
  };
  EXPECT_EQ(count("gpt2"), 124'439'808);
  EXPECT_EQ(count("tinyllama-1.1b"), 1'100'048'384);
  EXPECT_GE(count("demo") * 4, 400'000'000);
}

TEST(Weights, RandomOnesDependOnTheSeedOnlyAndHaveTheVarianceOfTheirFanIn) {
  const ModelConfig config = llama_config(6, 2);
  ThreadPool one(1), three(3);
  const Weights a = Weights::random(config, 5, one);
  const Weights b = Weights::random(config, 5, three);
  const Weights c = Weights::random(config, 6, three);
  const std::string name = "layers.1.mlp.down_proj.weight";  // (96, 176): variance 1/176
  double squares = 0;
  int differ = 0;
  for (int i = 0; i < 96 * 176; ++i) {
    ASSERT_EQ(a.tensor(name)[i], b.tensor(name)[i]);
    differ += a.tensor(name)[i] != c.tensor(name)[i];
    squares += static_cast<double>(a.tensor(name)[i]) * a.tensor(name)[i];
  }
  EXPECT_GT(differ, 96 * 176 * 9 / 10);
  EXPECT_NEAR(squares / 96, 1.0, 0.05);
}

}  // namespace
}  // namespace llmprof::workload
