// Small GGUF models of every architecture, with the keys and tensor names that llama.cpp's converter writes: the config
// made of each must describe exactly the tensors that are there.

#include "model/checkpoint/tensor_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "model/checkpoint/open_model.h"
#include "model/memory.h"
#include "model/model.h"
#include "model/testing/gguf_builder.h"

namespace llmprof::model {
namespace {

using testing::GgufBuilder;
using Sizes = std::vector<std::uint64_t>;

// hidden 64, 4 heads of 16, 2 key-value heads, MLP 128, 40 tokens.
class Gguf : public GgufBuilder {
 public:
  Gguf(const std::string& architecture, int layers) : architecture_(architecture), layers_(layers) {
    text("general.architecture", architecture);
    texts("tokenizer.ggml.tokens", 40);
    number("block_count", layers);
    number("context_length", 256);
    number("embedding_length", 64);
    number("feed_forward_length", 128);
    number("attention.head_count", 4);
    weight("token_embd", {64, 40});
  }

  void number(const std::string& key, int value) { u32(architecture_ + "." + key, static_cast<std::uint32_t>(value)); }
  void weight(const std::string& name, const Sizes& sizes) { tensor(name + ".weight", sizes, 1); }
  void both(const std::string& name, const Sizes& sizes) {
    weight(name, sizes);
    tensor(name + ".bias", {sizes.back()});
  }
  void attention(const std::string& layer) {
    norm(layer + "attn_norm");
    weight(layer + "attn_q", {64, 64});
    weight(layer + "attn_k", {64, 32});
    weight(layer + "attn_v", {64, 32});
    weight(layer + "attn_output", {64, 64});
  }
  void mlp(const std::string& layer) {
    weight(layer + "ffn_gate", {64, 128});
    weight(layer + "ffn_up", {64, 128});
    weight(layer + "ffn_down", {128, 64});
  }
  void experts(const std::string& layer, std::uint64_t width, std::uint64_t count) {
    tensor(layer + "ffn_gate_inp.weight", {64, count});
    weight(layer + "ffn_gate_exps", {64, width, count});
    weight(layer + "ffn_up_exps", {64, width, count});
    weight(layer + "ffn_down_exps", {width, 64, count});
  }
  void norm(const std::string& name, std::uint64_t width = 64) { tensor(name + ".weight", {width}); }
  std::vector<std::string> layers() const {
    std::vector<std::string> prefixes;
    for (int layer = 0; layer < layers_; ++layer) prefixes.push_back("blk." + std::to_string(layer) + ".");
    return prefixes;
  }

 private:
  std::string architecture_;
  int layers_;
};

Result<OpenedModel> open_as_file(const Gguf& file) {
  const std::string path =
      std::filesystem::temp_directory_path() / ("llmprof_config_" + std::to_string(::getpid()) + ".gguf");
  std::ofstream(path, std::ios::binary | std::ios::trunc) << file.file();
  auto model = open_model(path);
  std::filesystem::remove(path);
  return model;
}

// Opens it and checks that config and tensors are one model.
OpenedModel opened(const Gguf& file) {
  auto model = open_as_file(file);
  EXPECT_TRUE(model) << model.error().message;
  if (!model) return {};
  for (const Caveat& caveat : model->config.caveats) ADD_FAILURE() << caveat.field << ": " << caveat.meaning;
  const Graph graph(model->config);
  EXPECT_EQ(model->checkpoint->parameters, parameters(graph));
  EXPECT_NEAR(weights_bytes(graph), static_cast<double>(model->checkpoint->bytes - model->checkpoint->buffer_bytes),
              1e-6 * static_cast<double>(model->checkpoint->bytes));
  return std::move(*model);
}

TEST(GgufConfig, Llama) {
  Gguf file("llama", 2);
  file.number("attention.head_count_kv", 2);
  file.norm("rope_freqs", 8);
  for (const std::string& layer : file.layers()) {
    file.attention(layer);
    file.norm(layer + "ffn_norm");
    file.mlp(layer);
  }
  file.norm("output_norm");
  file.weight("output", {64, 40});
  const Config config = opened(file).config;
  EXPECT_EQ(config.family, "llama");
  EXPECT_FALSE(config.tied_embeddings);
  EXPECT_EQ(config.positions, 256);
}

TEST(GgufConfig, MixtralIsLlamaWithExperts) {
  Gguf file("llama", 2);
  file.number("attention.head_count_kv", 2);
  file.number("expert_count", 4);
  file.number("expert_used_count", 2);
  for (const std::string& layer : file.layers()) {
    file.attention(layer);
    file.norm(layer + "ffn_norm");
    file.experts(layer, 128, 4);
  }
  file.norm("output_norm");
  file.weight("output", {64, 40});
  const Config config = opened(file).config;
  EXPECT_EQ(config.family, "mixtral");
  EXPECT_EQ(config.kinds.at(0).mlp.experts_per_token, 2);
}

TEST(GgufConfig, Qwen2AndQwen3) {
  Gguf older("qwen2", 2), newer("qwen3", 2);
  older.number("attention.head_count_kv", 2);
  newer.number("attention.head_count_kv", 2);
  newer.number("attention.key_length", 16);
  newer.number("attention.value_length", 16);
  for (const std::string& layer : older.layers()) {
    older.attention(layer);
    older.tensor(layer + "attn_q.bias", {64});
    older.tensor(layer + "attn_k.bias", {32});
    older.tensor(layer + "attn_v.bias", {32});
    newer.attention(layer);
    newer.norm(layer + "attn_q_norm", 16);
    newer.norm(layer + "attn_k_norm", 16);
    for (Gguf* file : {&older, &newer}) {
      file->norm(layer + "ffn_norm");
      file->mlp(layer);
    }
  }
  older.norm("output_norm");
  newer.norm("output_norm");
  EXPECT_EQ(opened(older).config.family, "qwen2");
  EXPECT_EQ(opened(newer).config.family, "qwen3");
}

TEST(GgufConfig, QwenWithExperts) {
  Gguf older("qwen2moe", 2), newer("qwen3moe", 2);
  for (Gguf* file : {&older, &newer}) {
    file->number("attention.head_count_kv", 2);
    file->number("expert_count", 6);
    file->number("expert_used_count", 3);
    file->number("expert_feed_forward_length", 32);
  }
  older.number("expert_shared_feed_forward_length", 96);
  newer.number("attention.key_length", 16);
  for (const std::string& layer : older.layers()) {
    older.attention(layer);
    older.tensor(layer + "attn_q.bias", {64});
    older.tensor(layer + "attn_k.bias", {32});
    older.tensor(layer + "attn_v.bias", {32});
    older.norm(layer + "ffn_norm");
    older.experts(layer, 32, 6);
    older.tensor(layer + "ffn_gate_inp_shexp.weight", {64});
    older.weight(layer + "ffn_gate_shexp", {64, 96});
    older.weight(layer + "ffn_up_shexp", {64, 96});
    older.weight(layer + "ffn_down_shexp", {96, 64});
    newer.attention(layer);
    newer.norm(layer + "attn_q_norm", 16);
    newer.norm(layer + "attn_k_norm", 16);
    newer.norm(layer + "ffn_norm");
    newer.experts(layer, 32, 6);
  }
  older.norm("output_norm");
  older.weight("output", {64, 40});
  newer.norm("output_norm");
  newer.weight("output", {64, 40});
  EXPECT_EQ(opened(older).config.kinds.at(0).mlp.shared_width, 96);
  EXPECT_EQ(opened(newer).config.kinds.at(0).mlp.experts, 6);
}

TEST(GgufConfig, Gemma2AndGemma3) {
  for (const bool third : {false, true}) {
    Gguf file(third ? "gemma3" : "gemma2", 6);
    file.number("attention.head_count_kv", 2);
    file.number("attention.key_length", 16);
    file.number("attention.value_length", 16);
    file.number("attention.sliding_window", 32);
    for (const std::string& layer : file.layers()) {
      file.attention(layer);
      if (third) file.norm(layer + "attn_q_norm", 16);
      if (third) file.norm(layer + "attn_k_norm", 16);
      file.norm(layer + "post_attention_norm");
      file.norm(layer + "ffn_norm");
      file.mlp(layer);
      file.norm(layer + "post_ffw_norm");
    }
    file.norm("output_norm");
    const Config config = opened(file).config;
    EXPECT_EQ(config.family, third ? "gemma3" : "gemma2");
    std::vector<std::int64_t> windows;
    for (const std::uint32_t kind : config.kind_of_layer) windows.push_back(config.kinds[kind].attention.window);
    const std::vector<std::int64_t> five_of_six{32, 32, 32, 32, 32, 0}, every_other{32, 0, 32, 0, 32, 0};
    EXPECT_EQ(windows, third ? five_of_six : every_other);
  }
}

TEST(GgufConfig, LayersWithAWindowByFlags) {
  Gguf file("gemma3", 2);
  file.number("attention.head_count_kv", 2);
  file.number("attention.key_length", 16);
  file.number("attention.sliding_window", 32);
  file.numbers("gemma3.attention.sliding_window_pattern", {0, 1});
  const auto model = open_as_file(file);
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->config.kinds.at(model->config.kind_of_layer.at(0)).attention.window, 0);
  EXPECT_EQ(model->config.kinds.at(model->config.kind_of_layer.at(1)).attention.window, 32);
}

TEST(GgufConfig, Phi3HasFusedMatrices) {
  Gguf file("phi3", 2);
  file.number("attention.head_count_kv", 2);
  file.number("attention.sliding_window", 128);
  for (const std::string& layer : file.layers()) {
    file.norm(layer + "attn_norm");
    file.weight(layer + "attn_qkv", {64, 128});
    file.weight(layer + "attn_output", {64, 64});
    file.norm(layer + "ffn_norm");
    file.weight(layer + "ffn_up", {64, 256});
    file.weight(layer + "ffn_down", {128, 64});
  }
  file.norm("rope_factors_long", 8);
  file.norm("rope_factors_short", 8);
  file.norm("output_norm");
  file.weight("output", {64, 40});
  EXPECT_EQ(opened(file).config.family, "phi3");
}

TEST(GgufConfig, Gpt2) {
  Gguf file("gpt2", 2);
  file.weight("position_embd", {64, 256});
  for (const std::string& layer : file.layers()) {
    file.both(layer + "attn_norm", {64});
    file.both(layer + "attn_qkv", {64, 192});
    file.both(layer + "attn_output", {64, 64});
    file.both(layer + "ffn_norm", {64});
    file.both(layer + "ffn_up", {64, 128});
    file.both(layer + "ffn_down", {128, 64});
  }
  file.both("output_norm", {64});
  EXPECT_TRUE(opened(file).config.position_table);
}

TEST(GgufConfig, LatentAttentionOldAndNew) {
  for (const bool newer : {false, true}) {
    Gguf file("deepseek2", 3);
    // qk 24 = 16 + 8 rotary, v 16, latent 32, q latent 48; one dense layer, then 4 experts of 32 and 2 shared ones
    file.number("attention.head_count_kv", newer ? 1 : 4);
    file.number("attention.q_lora_rank", 48);
    file.number("attention.kv_lora_rank", 32);
    file.number("attention.key_length", newer ? 40 : 24);
    file.number("attention.value_length", newer ? 32 : 16);
    if (newer) file.number("attention.key_length_mla", 24);
    if (newer) file.number("attention.value_length_mla", 16);
    file.number("rope.dimension_count", 8);
    file.number("expert_count", 4);
    file.number("expert_used_count", 2);
    file.number("expert_shared_count", 2);
    file.number("expert_feed_forward_length", 32);
    file.number("leading_dense_block_count", 1);
    if (newer) file.number("expert_gating_func", 2);
    for (const std::string& layer : file.layers()) {
      file.norm(layer + "attn_norm");
      file.weight(layer + "attn_q_a", {64, 48});
      file.norm(layer + "attn_q_a_norm", 48);
      file.weight(layer + "attn_q_b", {48, 96});
      file.weight(layer + "attn_kv_a_mqa", {64, 40});
      file.norm(layer + "attn_kv_a_norm", 32);
      if (newer) {
        file.weight(layer + "attn_k_b", {16, 32, 4});
        file.weight(layer + "attn_v_b", {32, 16, 4});
      } else {
        file.weight(layer + "attn_kv_b", {32, 128});
      }
      file.weight(layer + "attn_output", {64, 64});
      file.norm(layer + "ffn_norm");
      if (layer == "blk.0.") {
        file.mlp(layer);
        continue;
      }
      file.experts(layer, 32, 4);
      if (newer) file.tensor(layer + "exp_probs_b.bias", {4});
      file.weight(layer + "ffn_gate_shexp", {64, 64});
      file.weight(layer + "ffn_up_shexp", {64, 64});
      file.weight(layer + "ffn_down_shexp", {64, 64});
    }
    file.norm("output_norm");
    file.weight("output", {64, 40});
    const Config config = opened(file).config;
    EXPECT_EQ(config.family, newer ? "deepseek_v3" : "deepseek_v2");
    EXPECT_EQ(config.kinds.at(0).attention.kv_values(), 40);
    EXPECT_EQ(config.kinds.at(0).mlp.experts, 0);
    EXPECT_EQ(config.kinds.at(1).mlp.shared_width, 64);
  }
}

TEST(GgufConfig, GptOss) {
  Gguf file("gpt-oss", 2);
  file.number("attention.head_count_kv", 2);
  file.number("attention.key_length", 16);
  file.number("attention.sliding_window", 32);
  file.number("expert_count", 4);
  file.number("expert_used_count", 2);
  file.number("expert_feed_forward_length", 96);
  for (const std::string& layer : file.layers()) {
    file.norm(layer + "attn_norm");
    file.both(layer + "attn_q", {64, 64});
    file.both(layer + "attn_k", {64, 32});
    file.both(layer + "attn_v", {64, 32});
    file.both(layer + "attn_output", {64, 64});
    file.tensor(layer + "attn_sinks.weight", {4});
    file.norm(layer + "post_attention_norm");
    file.both(layer + "ffn_gate_inp", {64, 4});
    for (const char* name : {"ffn_gate_exps", "ffn_up_exps"}) {
      file.tensor(layer + name + ".weight", {64, 96, 4}, 39);  // MXFP4
      file.tensor(layer + name + ".bias", {96, 4});
    }
    file.tensor(layer + "ffn_down_exps.weight", {96, 64, 4}, 39);
    file.tensor(layer + "ffn_down_exps.bias", {64, 4});
  }
  file.norm("output_norm");
  file.weight("output", {64, 40});
  const OpenedModel model = opened(file);
  EXPECT_EQ(model.config.family, "gpt_oss");
  EXPECT_EQ(model.config.stored.at("layers.1.mlp.experts.gate_up_proj").type, "mxfp4");
  // 2 x 96 x 64 x 4 values of 17/32 bytes and 2 x 96 x 4 biases of 4, over as many parameters
  EXPECT_DOUBLE_EQ(model.config.stored.at("layers.1.mlp.experts.gate_up_proj").bytes,
                   (49152 * 17.0 / 32 + 768 * 4) / (49152 + 768));
}

// What nobody described is read as what most decoders are, and said to be that.
TEST(GgufConfig, AnUnknownArchitectureIsReadAsFarAsItGoes) {
  Gguf file("newarch", 2);
  file.number("attention.head_count_kv", 2);
  const auto model = open_as_file(file);
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_FALSE(model->config.caveats.empty());
  EXPECT_EQ(model->config.hidden, 64);
}

}  // namespace
}  // namespace llmprof::model
