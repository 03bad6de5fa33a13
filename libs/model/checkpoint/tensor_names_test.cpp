#include "model/checkpoint/tensor_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace llmprof::model {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Case {
  const char* name;
  int layer;  // -1: none
  const char* op;
  TensorRole role = TensorRole::kParameters;
};

// Names as the files of public models have them.
const Case kCases[] = {
    {"model.embed_tokens.weight", -1, "embed_tokens"},
    {"lm_head.weight", -1, "lm_head"},
    {"model.norm.weight", -1, "norm"},
    {"model.layers.3.mlp.up_proj.weight", 3, "mlp.up_proj"},
    {"model.layers.17.self_attn.q_proj.bias", 17, "self_attn.q_proj"},
    {"language_model.model.layers.2.self_attn.q_norm.weight", 2, "self_attn.q_norm"},
    {"model.language_model.layers.2.input_layernorm.weight", 2, "input_layernorm"},
    {"language_model.lm_head.weight", -1, "lm_head"},
    {"transformer.h.0.attn.c_attn.weight", 0, "attn.c_attn"},
    {"h.11.mlp.c_fc.bias", 11, "mlp.c_fc"},
    {"wpe.weight", -1, "wpe"},
    {"h.0.attn.bias", 0, "attn", TensorRole::kBuffer},
    {"transformer.h.0.attn.masked_bias", 0, "attn", TensorRole::kBuffer},
    {"model.layers.0.self_attn.rotary_emb.inv_freq", 0, "self_attn.rotary_emb", TensorRole::kBuffer},
    {"model.layers.0.mlp.experts.17.gate_proj.weight", 0, "mlp.experts.gate_proj"},
    {"model.layers.0.block_sparse_moe.experts.7.w1.weight", 0, "block_sparse_moe.experts.w1"},
    {"model.layers.5.mlp.gate.e_score_correction_bias", 5, "mlp.gate"},
    // GPTQ, AWQ
    {"model.layers.3.mlp.up_proj.qweight", 3, "mlp.up_proj", TensorRole::kPacked},
    {"model.layers.3.mlp.up_proj.qzeros", 3, "mlp.up_proj", TensorRole::kSide},
    {"model.layers.3.mlp.up_proj.scales", 3, "mlp.up_proj", TensorRole::kSide},
    {"model.layers.3.mlp.up_proj.g_idx", 3, "mlp.up_proj", TensorRole::kSide},
    {"language_model.model.layers.3.mlp.up_proj.biases", 3, "mlp.up_proj", TensorRole::kSide},  // MLX
    // FP8, compressed-tensors, bitsandbytes
    {"model.layers.3.mlp.experts.0.down_proj.weight_scale_inv", 3, "mlp.experts.down_proj", TensorRole::kSide},
    {"model.layers.3.mlp.up_proj.weight_packed", 3, "mlp.up_proj", TensorRole::kPacked},
    {"model.layers.3.mlp.up_proj.input_scale", 3, "mlp.up_proj", TensorRole::kSide},
    {"model.layers.3.mlp.up_proj.weight.absmax", 3, "mlp.up_proj", TensorRole::kSide},
    {"model.layers.3.mlp.up_proj.weight.quant_state.bitsandbytes__nf4", 3, "mlp.up_proj", TensorRole::kSide},
    // GPT-OSS
    {"model.layers.0.mlp.experts.gate_up_proj_blocks", 0, "mlp.experts.gate_up_proj", TensorRole::kPacked},
    {"model.layers.0.mlp.experts.gate_up_proj_scales", 0, "mlp.experts.gate_up_proj", TensorRole::kSide},
    {"model.layers.0.mlp.experts.gate_up_proj_bias", 0, "mlp.experts.gate_up_proj"},
    {"model.layers.0.mlp.experts.down_proj", 0, "mlp.experts.down_proj"},
    {"model.layers.0.self_attn.sinks", 0, "self_attn.sinks"},
    // GGUF
    {"token_embd.weight", -1, "token_embd"},
    {"blk.3.ffn_up.weight", 3, "ffn_up"},
    {"blk.3.ffn_up.5.weight", 3, "ffn_up_exps"},
    {"blk.3.exp_probs_b.bias", 3, "exp_probs_b"},
    {"rope_freqs.weight", -1, "rope_freqs", TensorRole::kBuffer},
    // Others keep their own name.
    {"vision_tower.vision_model.encoder.layers.0.mlp.fc1.weight", -1,
     "vision_tower.vision_model.encoder.layers.0.mlp.fc1"},
    {"model.layers.99999999999999999999.mlp.up_proj.weight", -1, "layers.99999999999999999999.mlp.up_proj"},
    {"", -1, ""},
    {"model.", -1, ""},
    {"weight", -1, "weight"},
    {"...", -1, "..."},
};

TEST(TensorNames, ArePartedIntoLayerOperatorAndRole) {
  for (const Case& expected : kCases) {
    const TensorName found = parse_tensor_name(expected.name);
    EXPECT_EQ(found.layer.value_or(-1), expected.layer) << expected.name;
    EXPECT_EQ(found.op, expected.op) << expected.name;
    EXPECT_EQ(static_cast<int>(found.role), static_cast<int>(expected.role)) << expected.name;
  }
}

std::vector<std::string> found(const char* tensor, const std::set<std::string>& known) {
  return ops_of(parse_tensor_name(tensor), [&](const std::string& op) { return known.contains(op); });
}

TEST(TensorNames, FindTheOperatorThatTheFamilyHas) {
  const std::set<std::string> llama{"post_attention_layernorm", "self_attn.q_proj", "mlp.up_proj", "embed_tokens"};
  EXPECT_THAT(found("blk.0.ffn_norm.weight", llama), ElementsAre("post_attention_layernorm"));
  EXPECT_THAT(found("blk.0.attn_q.weight", llama), ElementsAre("self_attn.q_proj"));
  EXPECT_THAT(found("token_embd.weight", llama), ElementsAre("embed_tokens"));
  EXPECT_THAT(found("blk.0.nextn.eh_proj.weight", llama), IsEmpty());
  // Gemma has norms before and after.
  const std::set<std::string> gemma{"post_attention_layernorm", "pre_feedforward_layernorm",
                                    "post_feedforward_layernorm"};
  EXPECT_THAT(found("blk.0.ffn_norm.weight", gemma), ElementsAre("pre_feedforward_layernorm"));
  EXPECT_THAT(found("blk.0.post_attention_norm.weight", gemma), ElementsAre("post_attention_layernorm"));
  EXPECT_THAT(found("blk.0.post_ffw_norm.weight", gemma), ElementsAre("post_feedforward_layernorm"));
  const std::set<std::string> gpt2{"wte", "ln_2", "attn.c_attn", "mlp.c_fc"};
  EXPECT_THAT(found("blk.0.ffn_norm.bias", gpt2), ElementsAre("ln_2"));
  EXPECT_THAT(found("blk.0.attn_qkv.weight", gpt2), ElementsAre("attn.c_attn"));
  EXPECT_THAT(found("blk.0.ffn_up.weight", gpt2), ElementsAre("mlp.c_fc"));
  EXPECT_THAT(found("position_embd.weight", gpt2), ElementsAre("wte"));  // both tables are one operator
  EXPECT_THAT(found("transformer.wpe.weight", gpt2), ElementsAre("wte"));
}

TEST(TensorNames, ExpertsAreFoundFusedOrNot) {
  const std::set<std::string> apart{"mlp.gate", "mlp.experts.gate_proj", "mlp.experts.up_proj",
                                    "mlp.experts.down_proj"};
  EXPECT_THAT(found("model.layers.0.block_sparse_moe.experts.3.w1.weight", apart),
              ElementsAre("mlp.experts.gate_proj"));
  EXPECT_THAT(found("model.layers.0.block_sparse_moe.experts.3.w2.weight", apart),
              ElementsAre("mlp.experts.down_proj"));
  EXPECT_THAT(found("model.layers.0.block_sparse_moe.experts.3.w3.weight", apart), ElementsAre("mlp.experts.up_proj"));
  EXPECT_THAT(found("model.layers.0.block_sparse_moe.gate.weight", apart), ElementsAre("mlp.gate"));
  EXPECT_THAT(found("blk.0.ffn_gate_inp.weight", apart), ElementsAre("mlp.gate"));
  EXPECT_THAT(found("model.layers.0.mlp.experts.gate_up_proj", apart),
              ElementsAre("mlp.experts.gate_proj", "mlp.experts.up_proj"));
  const std::set<std::string> fused{"mlp.router", "mlp.experts.gate_up_proj", "mlp.experts.down_proj"};
  EXPECT_THAT(found("blk.0.ffn_gate_exps.weight", fused), ElementsAre("mlp.experts.gate_up_proj"));
  EXPECT_THAT(found("blk.0.ffn_up_exps.bias", fused), ElementsAre("mlp.experts.gate_up_proj"));
  EXPECT_THAT(found("blk.0.ffn_gate_inp.bias", fused), ElementsAre("mlp.router"));
}

}  // namespace
}  // namespace llmprof::model
