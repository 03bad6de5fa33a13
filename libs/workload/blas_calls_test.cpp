// The matrix products a pass asks of BLAS, counted at the BLAS interface: this program's own cblas functions stand
// before the library's, count, and pass on.

#include <cblas.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdint>

#include "workload/generate.h"
#include "workload/model.h"
#include "workload/config.h"
#include "workload/train/trainer.h"

namespace {

struct Counts {
  std::int64_t calls = 0;
  std::int64_t flops = 0;  // 2MNK
};
Counts g_counts;

template <class Function>
Function real(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" void cblas_sgemm(const CBLAS_ORDER order, const CBLAS_TRANSPOSE trans_a, const CBLAS_TRANSPOSE trans_b,
                            const blasint m, const blasint n, const blasint k, const float alpha, const float* a,
                            const blasint lda, const float* b, const blasint ldb, const float beta, float* c,
                            const blasint ldc) {
  static const auto next = real<decltype(&cblas_sgemm)>("cblas_sgemm");
  ++g_counts.calls;
  g_counts.flops += 2 * std::int64_t{m} * n * k;
  next(order, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

extern "C" void cblas_sgemv(const CBLAS_ORDER order, const CBLAS_TRANSPOSE trans, const blasint m, const blasint n,
                            const float alpha, const float* a, const blasint lda, const float* x, const blasint incx,
                            const float beta, float* y, const blasint incy) {
  static const auto next = real<decltype(&cblas_sgemv)>("cblas_sgemv");
  ++g_counts.calls;
  g_counts.flops += 2 * std::int64_t{m} * n;
  next(order, trans, m, n, alpha, a, lda, x, incx, beta, y, incy);
}

namespace llmprof::workload {
namespace {

// Parameters of one layer's matrices.
std::int64_t layer_weights(const ModelConfig& c) {
  const std::int64_t attention_width = c.heads * c.head_dim;
  const std::int64_t kv_width = c.kv_heads * c.head_dim;
  const std::int64_t mlp_matrices = c.family == Family::kLlama ? 3 : 2;
  return c.hidden * (2 * attention_width + 2 * kv_width) + mlp_matrices * c.hidden * c.intermediate;
}

class BlasCallsTest : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Families, BlasCallsTest, testing::Values("tiny-llama", "tiny-gpt2"),
                         [](const auto& preset) { return preset.index == 0 ? "llama" : "gpt2"; });

TEST_P(BlasCallsTest, FlopsOfAPassAreThoseOfItsWeightsAndFullAttention) {
  constexpr std::int64_t kBatch = 3;
  constexpr std::int64_t kTokens = 7;
  const ModelConfig config = find_preset(GetParam())->config;
  ThreadPool pool(1);
  const auto model = make_model(config, Weights::random(config, 1, pool), pool);
  KvCache cache(config, kBatch, 16);
  const std::int64_t head = 2 * kBatch * config.vocab * config.hidden;  // only the last position of each sequence

  g_counts = {};
  model->forward(random_prompts(config, {.batch = kBatch, .prompt_tokens = kTokens}), cache);
  const std::int64_t full_attention = 2 * 2 * kBatch * config.heads * kTokens * kTokens * config.head_dim;
  EXPECT_EQ(g_counts.flops, config.layers * (2 * kBatch * kTokens * layer_weights(config) + full_attention) + head);

  // Decode attention is no BLAS; what remains are the weights, once per sequence.
  g_counts = {};
  model->forward(std::vector<Token>(kBatch, 1), cache);
  EXPECT_EQ(g_counts.flops, config.layers * 2 * kBatch * layer_weights(config) + head);

  // Per layer 7 products for Llama, 4 for GPT-2, and the head; a row each, as there are few.
  const std::int64_t products = config.layers * (config.family == Family::kLlama ? 7 : 4) + 1;
  EXPECT_EQ(g_counts.calls, kBatch * products);
}

// One training step: every position has logits; backward multiplies each matrix twice, for the gradient of its input
// and for its own. Attention is 2 full squares per head forward and 4 backward. The update multiplies nothing.
TEST(TrainingBlasCalls, FlopsOfAStepAreThoseOfItsWeightsAndFullAttention) {
  constexpr std::int64_t kBatch = 3, kTokens = 7, kRows = kBatch * kTokens;
  const ModelConfig config = gpt2_config(2, 128, 4, 300, 64);
  ThreadPool pool(1);
  Trainer trainer(config, Weights::random(config, 1, pool), {.batch = kBatch, .tokens = kTokens}, pool);
  const std::vector<Token> tokens = random_prompts(config, {.batch = kBatch, .prompt_tokens = kTokens});
  const std::int64_t square = 2 * kBatch * config.heads * kTokens * kTokens * config.head_dim;
  const std::int64_t weights = config.layers * layer_weights(config) + config.vocab * config.hidden;

  g_counts = {};
  ASSERT_TRUE(trainer.forward(tokens, tokens));
  EXPECT_EQ(g_counts.flops, 2 * kRows * weights + config.layers * 2 * square);
  EXPECT_EQ(g_counts.calls, config.layers * (4 + 2 * kBatch * config.heads) + 1);
  g_counts = {};
  ASSERT_TRUE(trainer.backward());
  EXPECT_EQ(g_counts.flops, 2 * 2 * kRows * weights + config.layers * 4 * square);
  EXPECT_EQ(g_counts.calls, config.layers * (2 * 4 + 4 * kBatch * config.heads) + 2);
  g_counts = {};
  ASSERT_TRUE(trainer.update());
  EXPECT_EQ(g_counts.calls, 0);
}

}  // namespace
}  // namespace llmprof::workload
