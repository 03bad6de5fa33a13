// The model in ragged batches over a paged cache: a request gets the tokens that it gets alone, whatever runs beside it,
// in whatever chunks it is computed, and whatever it finds in the cache.
//
// Greedy tokens, not bits: a product of more rows sums in another order (and four rows or fewer are vector products), so
// that logits differ by some 1e-7. Where two tokens were as close as that the choice could differ; in these models the
// two likeliest are 1e-4 apart or more.

#include "workload/serve/step_runner.h"

#include <gtest/gtest.h>

#include <cmath>

#include "workload/serve/testing/served.h"

namespace llmprof::workload {
namespace {

ModelConfig config_of(Family family) {
  return complete({.family = family,
                   .layers = 2,
                   .hidden = 64,
                   .heads = 4,
                   .kv_heads = family == Family::kLlama ? 2 : 4,
                   .intermediate = 176,
                   .vocab = 211,
                   .positions = 96})
      .value();
}

class CpuStepRunnerTest : public testing::TestWithParam<Family> {
 protected:
  std::vector<Token> alone(const GenerationRequest& request) {
    KvCache cache(config_, 1, config_.positions);
    std::vector<Token> made, input = request.prompt;
    while (std::ssize(made) < request.most_tokens) {
      const std::span<const float> logits = model_->forward(input, cache);
      made.push_back(sample(request.sampler, logits, 0, cache.length()));
      input = {made.back()};
    }
    return made;
  }

  ModelConfig config_ = config_of(GetParam());
  ThreadPool pool_{2};
  std::unique_ptr<Model> model_ = make_model(config_, Weights::random(config_, 1, pool_), pool_);
};

INSTANTIATE_TEST_SUITE_P(Families, CpuStepRunnerTest, testing::Values(Family::kGpt2, Family::kLlama));

TEST_P(CpuStepRunnerTest, RequestsGetTheTokensTheyGetAlone) {
  std::int64_t preempted = 0, cached = 0, chunked = 0;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    const serving::EngineRules rules = small_engine(13 + static_cast<std::int64_t>(seed) * 3, seed % 2 == 0 ? 11 : 50);
    CpuStepRunner runner(*model_, rules.num_gpu_blocks, rules.block_size);
    Served served;
    LiveEngine engine(rules, runner, served);
    std::vector<Arrival> script = random_script(seed, config_.vocab, 16, seed % 3);
    for (std::size_t i = 0; i < script.size(); i += 4)
      script[i].request.sampler = {.kind = Sampler::Kind::kTopK, .k = 8, .seed = i, .temperature = 0.8};
    ASSERT_TRUE(run_script(engine, served, script));
    for (const Arrival& each : script) {
      const auto& got = served.requests[each.request.ticket];
      EXPECT_EQ(got.tokens, alone(each.request)) << "seed " << seed << " request " << each.request.id;
      cached += got.cached;
    }
    preempted += served.preempted();
    for (const auto& step : served.steps) {
      for (const auto& member : step.members) chunked += member.tokens > 1 && !member.sampled ? 1 : 0;
    }
  }
  EXPECT_GT(preempted, 3);
  EXPECT_GT(cached, 50);
  EXPECT_GT(chunked, 10);
}

TEST_P(CpuStepRunnerTest, LogitsAreThoseOfOnePassOverOnePieceOfCache) {
  const std::vector<Token> tokens = random_prompts(config_, {.batch = 1, .prompt_tokens = 30, .prompt_seed = 3});
  KvCache whole(config_, 1, 30);
  const std::span<const float> once = model_->forward(tokens, whole);
  const std::vector<float> expected(once.begin(), once.end());
  KvBlocks cache(config_, 20, 4);
  const std::vector<BlockId> blocks{7, 2, 19, 3, 11, 1, 5, 16}, others{4, 6};
  std::span<const float> logits;
  std::int64_t position = 0;
  for (const std::int64_t count : {1, 12, 5, 11, 1}) {  // beside another sequence
    std::vector<Token> rows(tokens.begin() + position, tokens.begin() + position + count);
    rows.insert(rows.end(), 5, 9);
    const std::vector<NewTokens> sequences{
        {.row = 0, .tokens = count, .position = position, .blocks = blocks.data()},
        {.row = count, .tokens = 5, .position = 0, .blocks = others.data(), .sampled = false}};
    logits = model_->forward(rows, sequences, cache);
    position += count;
  }
  ASSERT_EQ(logits.size(), expected.size());
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    difference += std::pow(logits[i] - expected[i], 2);
    norm += std::pow(expected[i], 2);
  }
  EXPECT_LT(std::sqrt(difference / norm), 1e-5);
}

TEST(SampleAll, SkipsThoseThatAreNotSampled) {
  const Sampler greedy;
  const std::vector<const Sampler*> samplers{&greedy, &greedy};
  const std::vector<NewTokens> sequences{{.row = 0, .tokens = 1, .position = 0, .blocks = nullptr},
                                         {.row = 1, .tokens = 1, .position = 0, .blocks = nullptr, .sampled = false},
                                         {.row = 2, .tokens = 1, .position = 0, .blocks = nullptr}};
  const std::vector<float> logits{0, 1, 0, 0, 0, 1};
  std::vector<Token> next(2);
  sample_all({.tokens = {}, .sequences = sequences, .samplers = samplers}, logits, next);
  EXPECT_EQ(next, (std::vector<Token>{1, 2}));
}

}  // namespace
}  // namespace llmprof::workload
