// Names of tensors as the files of public models have them: every tensor finds its module, every module its tensors.
// Names and total_size of Llama 3.1, Phi-3, Mixtral and Qwen3 are those of their model.safetensors.index.json: the sum
// of bytes must be the analysis' own. Of the others the names alone are compared.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "model/checkpoint/open_model.h"
#include "model/memory.h"
#include "model/model.h"
#include "model/zoo/zoo.h"

namespace llmprof::model {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

const Names kAttention{"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
                       "self_attn.o_proj", "input_layernorm",  "post_attention_layernorm"};

struct Index {
  std::string text;
  void add(const std::string& name) {
    text += (text.empty() ? "\"" : ",\"") + name + "\":\"model-00001-of-00002.safetensors\"";
  }
  void add_all(const std::string& prefix, const Names& modules, const Names& tensors = {"weight"}) {
    for (const std::string& module : modules) {
      for (const std::string& tensor : tensors) add(prefix + module + "." + tensor);
    }
  }
  void add_experts(const std::string& prefix, int count, const Names& modules, const Names& tensors = {"weight"}) {
    for (int expert = 0; expert < count; ++expert) add_all(prefix + std::to_string(expert) + ".", modules, tensors);
  }
};

std::string layer(int number) { return "model.layers." + std::to_string(number) + "."; }

Index with_ends() {
  Index index;
  index.add_all("model.", {"embed_tokens", "norm"});
  index.add("lm_head.weight");
  return index;
}

OpenedModel opened(const std::string& name, const Index& index, const std::string& total_size) {
  const fs::path folder = fs::temp_directory_path() / ("llmprof_real_" + std::to_string(::getpid()));
  fs::create_directories(folder);
  std::ofstream(folder / "config.json") << find_in_zoo(name)->config;
  std::ofstream(folder / "model.safetensors.index.json")
      << R"({"metadata":{"total_size":)" << total_size << R"(},"weight_map":{)" << index.text << "}}";
  auto model = open_model(folder);
  fs::remove_all(folder);
  EXPECT_TRUE(model) << model.error().message;
  return model ? std::move(*model) : OpenedModel{};
}

void expect_same(const std::string& name, const Index& index, const std::string& total_size) {
  const OpenedModel model = opened(name, index, total_size);
  for (const Caveat& caveat : model.config.caveats)
    ADD_FAILURE() << name << ": " << caveat.field << ": " << caveat.meaning;
  // Nothing is said of the sum if it is the analysis'.
  EXPECT_THAT(model.notes, ::testing::ElementsAre(::testing::HasSubstr("1 of the 1 files"))) << name;
  EXPECT_EQ(std::to_string(static_cast<std::int64_t>(weights_bytes(Graph(model.config)))), total_size) << name;
}

TEST(RealModels, Llama31) {
  Index index = with_ends();
  for (int i = 0; i < 32; ++i) {
    index.add_all(layer(i), kAttention);
    index.add_all(layer(i) + "mlp.", {"gate_proj", "up_proj", "down_proj"});
  }
  expect_same("llama-3.1-8b", index, "16060522496");
}

TEST(RealModels, Phi3) {
  Index index = with_ends();
  for (int i = 0; i < 32; ++i) {
    index.add_all(layer(i), {"self_attn.qkv_proj", "self_attn.o_proj", "mlp.gate_up_proj", "mlp.down_proj",
                             "input_layernorm", "post_attention_layernorm"});
  }
  expect_same("phi-3-mini", index, "7642159104");
}

TEST(RealModels, Mixtral) {
  Index index = with_ends();
  for (int i = 0; i < 56; ++i) {
    index.add_all(layer(i), kAttention);
    index.add(layer(i) + "block_sparse_moe.gate.weight");
    index.add_experts(layer(i) + "block_sparse_moe.experts.", 8, {"w1", "w2", "w3"});
  }
  expect_same("mixtral-8x22b", index, "281241268224");
}

TEST(RealModels, Qwen3WithExperts) {
  Index index = with_ends();
  for (int i = 0; i < 48; ++i) {
    index.add_all(layer(i), kAttention);
    index.add_all(layer(i), {"self_attn.q_norm", "self_attn.k_norm", "mlp.gate"});
    index.add_experts(layer(i) + "mlp.experts.", 128, {"gate_proj", "up_proj", "down_proj"});
  }
  expect_same("qwen3-30b-a3b", index, "61064245248");
}

// DeepSeek-V3 as the hub has it: blocks of FP8 with scales, and a 62nd layer that predicts one token more.
TEST(RealModels, DeepseekV3NamesItsExtraLayer) {
  const Names matrices{"self_attn.q_a_proj", "self_attn.q_b_proj", "self_attn.kv_a_proj_with_mqa",
                       "self_attn.kv_b_proj", "self_attn.o_proj"};
  const Names projections{"gate_proj", "up_proj", "down_proj"};
  const Names fp8{"weight", "weight_scale_inv"};
  Index index = with_ends();
  for (int i = 0; i < 62; ++i) {
    index.add_all(layer(i), matrices, fp8);
    index.add_all(layer(i), {"self_attn.q_a_layernorm", "self_attn.kv_a_layernorm", "input_layernorm",
                             "post_attention_layernorm"});
    if (i < 3) {
      index.add_all(layer(i) + "mlp.", projections, fp8);
      continue;
    }
    index.add_all(layer(i), {"mlp.gate"}, {"weight", "e_score_correction_bias"});
    index.add_all(layer(i) + "mlp.shared_experts.", projections, fp8);
    index.add_experts(layer(i) + "mlp.experts.", 256, projections, fp8);
  }
  index.add_all(layer(61), {"enorm", "hnorm", "eh_proj", "shared_head.norm", "shared_head.head"});
  const OpenedModel model = opened("deepseek-v3", index, "1");
  ASSERT_EQ(model.config.caveats.size(), 1U);
  EXPECT_EQ(model.config.caveats[0].field, "layers.61.*");
  EXPECT_THAT(model.config.caveats[0].meaning, ::testing::HasSubstr("the config has 61 layers"));
}

// GPT-OSS keeps all experts of a layer in one tensor; blocks of MXFP4 with scales.
TEST(RealModels, GptOss) {
  Index index = with_ends();
  for (int i = 0; i < 24; ++i) {
    index.add_all(layer(i) + "self_attn.", {"q_proj", "k_proj", "v_proj", "o_proj"}, {"weight", "bias"});
    index.add(layer(i) + "self_attn.sinks");
    index.add_all(layer(i), {"input_layernorm", "post_attention_layernorm"});
    index.add_all(layer(i), {"mlp.router"}, {"weight", "bias"});
    for (const char* name : {"gate_up_proj", "down_proj"}) {
      for (const char* tensor : {"_blocks", "_scales", "_bias"}) index.add(layer(i) + "mlp.experts." + name + tensor);
    }
  }
  const OpenedModel model = opened("gpt-oss-20b", index, "1");
  for (const Caveat& caveat : model.config.caveats) ADD_FAILURE() << caveat.field << ": " << caveat.meaning;
}

// The vision tower of a model is named, the language model under it is found.
TEST(RealModels, Gemma3WithATower) {
  Index index;
  index.add_all("language_model.model.", {"embed_tokens", "norm"});
  for (int i = 0; i < 62; ++i) {
    const std::string prefix = "language_model." + layer(i);
    index.add_all(prefix, kAttention);
    index.add_all(prefix, {"self_attn.q_norm", "self_attn.k_norm", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj",
                           "pre_feedforward_layernorm", "post_feedforward_layernorm"});
  }
  index.add_all("vision_tower.vision_model.encoder.layers.0.", {"mlp.fc1", "mlp.fc2"}, {"weight", "bias"});
  index.add("multi_modal_projector.mm_input_projection_weight");
  const OpenedModel model = opened("gemma-3-27b", index, "1");
  ASSERT_EQ(model.config.caveats.size(), 2U);
  EXPECT_EQ(model.config.caveats[0].field, "multi_modal_projector.*");
  EXPECT_EQ(model.config.caveats[1].field, "vision_tower.*");
}

}  // namespace
}  // namespace llmprof::model
