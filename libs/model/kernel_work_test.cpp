#include "model/kernel_work.h"

#include <gtest/gtest.h>

#include "model/testing/tiny.h"

namespace llmprof::model {
namespace {

// The model's cost of one operator of a layer, all activations moved.
OpCost cost_of_op(const Config& config, const Pass& pass, std::string_view op) {
  for (const OpCost& cost : analyze(config, pass, 0)) {
    if (cost.op == op) return cost;
  }
  ADD_FAILURE() << op;
  return {};
}

TEST(KernelWork, ProductByHand) {
  // Two products of 3 x 4 by 4 x 5: 2 * 2 * 3 * 5 * 4 FLOPs; 12 and 20 values read, 15 written, each twice.
  const KernelWork work = product_work({.count = 2, .m = 3, .n = 5, .k = 4, .a_bytes = 1, .b_bytes = 1, .c_bytes = 2});
  EXPECT_EQ(work.flops, 240);
  EXPECT_EQ(work.read_bytes, 64);
  EXPECT_EQ(work.write_bytes, 60);
}

TEST(KernelWork, AProductIsTheModelsProjection) {
  const Config config = tiny_llama();
  const OpCost cost = cost_of_op(config, prefill(3, 7), "mlp.up_proj");
  const KernelWork work = product_work({.m = 21,
                                        .n = 12,
                                        .k = 8,
                                        .a_bytes = config.activation.bytes,
                                        .b_bytes = config.activation.bytes,
                                        .c_bytes = config.activation.bytes});
  EXPECT_EQ(work.flops, cost.flops);
  EXPECT_EQ(work.bytes(), cost.bytes());
}

TEST(KernelWork, AttentionIsTheModelsButForWritingTheCache) {
  const Config config = tiny_llama();
  const Attention& attention = config.kinds.front().attention;
  for (const Pass& pass : {decode(3, 9), prefill(2, 5)}) {
    const Sequences& s = pass.sequences.front();
    const auto count = static_cast<double>(s.count), tokens = static_cast<double>(s.tokens);
    const OpCost cost = cost_of_op(config, pass, "self_attn.core");
    const KernelWork work =
        attention_work(attention, count, tokens, static_cast<double>(s.context), config.activation.bytes);
    const double written = count * tokens * static_cast<double>(attention.kv_values()) * config.kv.bytes;
    EXPECT_EQ(work.flops, cost.flops);
    EXPECT_EQ(work.bytes(), cost.bytes() - written);
  }
}

TEST(KernelWork, LatentAttentionByHand) {
  // One token, context 10, 4 heads, latent 6 + 2: scores 8 and values 6 products per pair, 10 pairs.
  const Attention latent{.heads = 4, .kv_heads = 4, .qk_dim = 5, .v_dim = 3, .kv_rank = 6, .rope_dim = 2};
  const KernelWork work = attention_work(latent, 1, 1, 10, 2);
  EXPECT_EQ(work.flops, 2 * 4 * (8 + 6) * 10);
  EXPECT_EQ(work.read_bytes, (4 * 8 + 10 * 8) * 2);
  EXPECT_EQ(work.write_bytes, 4 * 6 * 2);
}

TEST(KernelWork, ExpertsByHand) {
  // 5 tokens to both of 2 experts: all weights are read. 10 rows of 8 -> 2 x 4 -> 4 -> 8.
  const KernelWork work =
      experts_work({.tokens = 5, .hidden = 8, .intermediate = 4, .experts = 2, .per_token = 2, .value_bytes = 1});
  EXPECT_EQ(work.flops, 2.0 * 10 * 3 * 8 * 4);
  EXPECT_EQ(work.read_bytes, 2 * 3 * 8 * 4 + 10 * 8 + 10 * 8 + 10 * 4);
  EXPECT_EQ(work.write_bytes, 10 * 8 + 10 * 4 + 5 * 8);
  // One token to one of 4: one expert's weights.
  const KernelWork one =
      experts_work({.tokens = 1, .hidden = 8, .intermediate = 4, .experts = 4, .per_token = 1, .value_bytes = 1});
  EXPECT_DOUBLE_EQ(one.read_bytes, 3 * 8 * 4 + 8 + 8 + 4);
}

TEST(KernelWork, ConvolutionByHand) {
  // 1 x 3 x 5 x 5 with 2 filters of 3 x 3, padding 1, stride 2: 3 x 3 outputs, each 27 multiply-adds.
  const Convolution c{.batch = 1,
                      .in_channels = 3,
                      .out_channels = 2,
                      .height = 5,
                      .width = 5,
                      .kernel = 3,
                      .stride = 2,
                      .padding = 1,
                      .value_bytes = 4};
  EXPECT_EQ(c.out_height(), 3);
  const KernelWork work = convolution_work(c);
  EXPECT_EQ(work.flops, 2 * 9 * 2 * 27);
  EXPECT_EQ(work.read_bytes, (75 + 54) * 4);
  EXPECT_EQ(work.write_bytes, 18 * 4);
}

TEST(KernelWork, LstmByHand) {
  // 2 sequences of 3 steps, 5 -> 4, one layer: 4 gates of 4 x (5 + 4) = 144 weights, and 2 biases of 16.
  const KernelWork work = lstm_work({.batch = 2, .steps = 3, .in = 5, .hidden = 4, .layers = 1, .value_bytes = 4});
  EXPECT_EQ(work.flops, 2 * 6 * 144);
  EXPECT_EQ(work.read_bytes, (144 + 32 + 6 * 5 + 2 * 8) * 4);  // states h and c of 2 x 4
  EXPECT_EQ(work.write_bytes, (6 * 4 + 2 * 8) * 4);
}

}  // namespace
}  // namespace llmprof::model
