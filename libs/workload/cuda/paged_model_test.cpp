// Steps of the server on a device against the CPU: the same batches give the same logits, and requests the tokens they
// get alone. Linked twice, as device_test.cpp is.

#include "workload/cuda/paged_model.h"

#include <gtest/gtest.h>

#include <cmath>

#include "workload/cuda/testing/test_device.h"
#include "workload/serve/testing/served.h"

namespace llmprof::workload::cuda {
namespace {

struct Case {
  const char* name;
  Family family;
  std::int64_t heads, kv_heads, head_dim;
  ElementType type;
};

// As in device_test.cpp.
double tolerance_of(ElementType type) { return type == ElementType::kFloat32 ? 1e-5 : 3e-2; }

ModelConfig config_of(const Case& of) {
  return complete({.family = of.family,
                   .layers = 2,
                   .hidden = 64,
                   .heads = of.heads,
                   .kv_heads = of.kv_heads,
                   .head_dim = of.head_dim,
                   .intermediate = 96,
                   .vocab = 131,
                   .positions = 256})
      .value();
}

class PagedModelTest : public testing::TestWithParam<Case> {
 protected:
  static constexpr std::int64_t kVocab = 131;
  DeviceStepRunner device_runner(const serving::EngineRules& rules) {
    DeviceWeights weights(*device_, config_, GetParam().type);
    weights.upload(Weights::random(config_, 1, pool_));
    return {*device_, config_, std::move(weights),
            {.rows = rules.max_num_batched_tokens,
             .sequences = rules.max_num_seqs,
             .positions = rules.max_model_len,
             .blocks = rules.num_gpu_blocks,
             .block_tokens = rules.block_size}};
  }

  ModelConfig config_ = config_of(GetParam());
  std::shared_ptr<Device> device_ = test_device();
  ThreadPool pool_{2};
  std::unique_ptr<Model> cpu_ = make_model(config_, Weights::random(config_, 1, pool_), pool_);
};

INSTANTIATE_TEST_SUITE_P(
    Families, PagedModelTest,
    testing::Values(Case{"gpt2_f32", Family::kGpt2, 4, 4, 16, ElementType::kFloat32},
                    Case{"gpt2_bf16", Family::kGpt2, 4, 4, 16, ElementType::kBfloat16},
                    Case{"grouped_f32", Family::kLlama, 4, 2, 16, ElementType::kFloat32},
                    Case{"grouped_bf16", Family::kLlama, 4, 2, 16, ElementType::kBfloat16},
                    Case{"wide_heads_f32", Family::kLlama, 1, 1, 104, ElementType::kFloat32}),
    [](const auto& each) { return std::string(each.param.name); });

// Chunks and decodes in one step, contexts below, at and beyond the 128 keys that a block of threads takes at a time.
TEST_P(PagedModelTest, LogitsEqualTheCpus) {
  const serving::EngineRules rules = small_engine(60, 170, 200);
  DeviceStepRunner runner = device_runner(rules);
  ASSERT_TRUE(runner.prepare());
  KvBlocks cache(config_, rules.num_gpu_blocks, rules.block_size);
  const Sampler greedy;
  std::vector<BlockId> long_blocks, short_blocks;
  for (BlockId block = 60; block > 15; --block) long_blocks.push_back(block);
  for (BlockId block = 1; block < 10; ++block) short_blocks.push_back(block);
  const std::vector<Token> tokens = random_prompts(config_, {.batch = 1, .prompt_tokens = 170, .prompt_seed = 4});
  struct Piece {
    std::int64_t long_tokens, short_tokens;
    bool long_sampled;
  };
  std::int64_t long_position = 0, short_position = 0;
  for (const Piece& piece : {Piece{126, 5, false}, Piece{1, 1, true}, Piece{1, 1, true}, Piece{1, 0, true},
                             Piece{9, 17, true}, Piece{1, 1, false}}) {
    std::vector<Token> rows(tokens.begin() + long_position, tokens.begin() + long_position + piece.long_tokens);
    rows.insert(rows.end(), tokens.end() - piece.short_tokens, tokens.end());
    std::vector<NewTokens> sequences{{.row = 0,
                                      .tokens = piece.long_tokens,
                                      .position = long_position,
                                      .blocks = long_blocks.data(),
                                      .sampled = piece.long_sampled}};
    if (piece.short_tokens > 0)
      sequences.push_back({.row = piece.long_tokens,
                           .tokens = piece.short_tokens,
                           .position = short_position,
                           .blocks = short_blocks.data()});
    const std::span<const float> expected = cpu_->forward(rows, sequences, cache);
    const std::size_t sampled = expected.size() / kVocab;
    const std::vector<const Sampler*> samplers(sampled, &greedy);
    std::vector<Token> next(sampled);
    ASSERT_TRUE(runner.run({.tokens = rows, .sequences = sequences, .samplers = samplers}, next));
    std::vector<float> actual(expected.size());
    runner.read_logits(actual);
    double difference = 0, norm = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      difference += std::pow(static_cast<double>(actual[i]) - expected[i], 2);
      norm += std::pow(static_cast<double>(expected[i]), 2);
    }
    EXPECT_LT(std::sqrt(difference / norm), tolerance_of(GetParam().type)) << "at " << long_position;
    for (std::size_t i = 0; i < sampled; ++i)
      EXPECT_EQ(next[i], sample({}, std::span<const float>(actual).subspan(i * kVocab, kVocab), 0, 0));
    long_position += piece.long_tokens, short_position += piece.short_tokens;
  }
}

// Chunks, preemptions and found prefixes beside each other. bfloat16 may choose otherwise than the CPU's float32.
TEST_P(PagedModelTest, RequestsGetTheTokensOfTheCpu) {
  if (GetParam().type != ElementType::kFloat32) return;
  const serving::EngineRules rules = small_engine(13, 12);
  DeviceStepRunner runner = device_runner(rules);
  ASSERT_TRUE(runner.prepare());
  Served served;
  LiveEngine engine(rules, runner, served);
  std::vector<Arrival> script = random_script(2, kVocab, 7, 1);
  script[1].request.sampler = {.kind = Sampler::Kind::kTopK, .k = 8, .seed = 5};
  ASSERT_TRUE(run_script(engine, served, script));
  for (const Arrival& each : script) {
    KvCache cache(config_, 1, rules.max_model_len);
    std::vector<Token> made, input = each.request.prompt;
    while (std::ssize(made) < each.request.most_tokens) {
      const std::span<const float> logits = cpu_->forward(input, cache);
      made.push_back(sample(each.request.sampler, logits, 0, cache.length()));
      input = {made.back()};
    }
    EXPECT_EQ(served.requests[each.request.ticket].tokens, made) << each.request.id;
  }
}

}  // namespace
}  // namespace llmprof::workload::cuda
