// Multi-head latent attention, by hand.

#include <gtest/gtest.h>

#include "model/memory.h"
#include "model/testing/tiny.h"

namespace llmprof::model {
namespace {

// DeepSeek-V3's attention: 128 heads of 128 + 64, values of 128, a latent of 512 and a rotary key of 64.
constexpr Attention kDeepSeekV3{
    .heads = 128, .kv_heads = 128, .qk_dim = 192, .v_dim = 128, .q_rank = 1536, .kv_rank = 512, .rope_dim = 64};

Config one_layer() {
  Config config = tiny_llama(1);
  config.hidden = 7168;
  config.set_type({"bfloat16", 2});
  set_layers(config, 1, {kDeepSeekV3, {.width = 18432}});
  return config;
}

double flops_of(const std::string& op, const Pass& pass, Latent latent) {
  for (const OpCost& cost : analyze_by_op(Graph(one_layer()), pass, {.latent = latent})) {
    if (cost.op == op) return cost.flops;
  }
  ADD_FAILURE() << op;
  return 0;
}

TEST(Latent, CachesTheLatentAndTheRotaryKey) {
  EXPECT_EQ(kDeepSeekV3.kv_values(), 576);
  EXPECT_EQ(kv_bytes_per_token(Graph(one_layer())), 576 * 2);  // 1,152 B a token and layer
}

TEST(Latent, AbsorbedDecodeByHand) {
  // 2·128·((512 + 64) + 512) = 278,528 FLOPs for each token of context.
  EXPECT_EQ(flops_of("self_attn.core", decode(1, 1000), Latent::kAbsorbed), 278'528.0 * 1000);
  // kv_b_proj's matrix, 512 x 128·(128 + 128), meets the new token only.
  EXPECT_EQ(flops_of("self_attn.kv_b_proj", decode(1, 1000), Latent::kAbsorbed), 2.0 * 512 * 128 * 256);
}

TEST(Latent, ExpandedDecodeByHand) {
  // 2·128·(192 + 128) = 81,920 a token, but the whole context is expanded first.
  EXPECT_EQ(flops_of("self_attn.core", decode(1, 1000), Latent::kExpanded), 81'920.0 * 1000);
  EXPECT_EQ(flops_of("self_attn.kv_b_proj", decode(1, 1000), Latent::kExpanded), 2.0 * 512 * 128 * 256 * 1000);
}

TEST(Latent, TheLeastIsAbsorbedForDecodeAndExpandedForPrefill) {
  for (const char* op : {"self_attn.core", "self_attn.kv_b_proj"}) {
    EXPECT_EQ(flops_of(op, decode(8, 4096), Latent::kLeast), flops_of(op, decode(8, 4096), Latent::kAbsorbed)) << op;
    EXPECT_EQ(flops_of(op, prefill(1, 4096), Latent::kLeast), flops_of(op, prefill(1, 4096), Latent::kExpanded)) << op;
  }
}

TEST(Latent, EachGroupOfAMixedPassTakesItsOwnWay) {
  const Sequences decoding{.count = 4, .tokens = 1, .context = 2000}, prompt{.count = 1, .tokens = 512, .context = 512};
  const double together = flops_of("self_attn.core", mixed({decoding, prompt}), Latent::kLeast);
  EXPECT_EQ(together, 4 * 278'528.0 * 2000 + 81'920.0 * (512.0 * 513 / 2));
}

TEST(Latent, TheWeightsAreReadOnceWhicheverWayIsTaken) {
  const Graph graph(one_layer());
  const double absorbed = total(graph, decode(1, 100), {.latent = Latent::kAbsorbed}).weight_bytes;
  EXPECT_EQ(absorbed, total(graph, decode(1, 100), {.latent = Latent::kExpanded}).weight_bytes);
}

}  // namespace
}  // namespace llmprof::model
