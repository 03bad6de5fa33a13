#include "model/checkpoint/open_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "model/memory.h"
#include "model/model.h"
#include "model/testing/gguf_builder.h"
#include "model/testing/safetensors_builder.h"

namespace llmprof::model {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using testing::GgufBuilder;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::SafetensorsBuilder;

// hidden 8, 2 layers, 2 heads of 4, 1 key-value head, MLP 16, 10 tokens, tied. Per layer: norms 2 x 8, q and o 2 x 64,
// k and v 2 x 32, MLP 3 x 128: 592. In all 2 x 592 + 80 + 8 = 1272.
constexpr const char* kConfig = R"({"model_type": "llama", "hidden_size": 8, "num_hidden_layers": 2,
  "num_attention_heads": 2, "num_key_value_heads": 1, "intermediate_size": 16, "vocab_size": 10,
  "max_position_embeddings": 32, "tie_word_embeddings": true, "torch_dtype": "bfloat16"})";
constexpr std::int64_t kParameters = 1272;

void add_layer(SafetensorsBuilder& file, int layer, const char* type = "BF16") {
  const std::string prefix = "model.layers." + std::to_string(layer) + ".";
  file.tensor(prefix + "input_layernorm.weight", "BF16", {8});
  file.tensor(prefix + "self_attn.q_proj.weight", type, {8, 8});
  file.tensor(prefix + "self_attn.k_proj.weight", type, {4, 8});
  file.tensor(prefix + "self_attn.v_proj.weight", type, {4, 8});
  file.tensor(prefix + "self_attn.o_proj.weight", type, {8, 8});
  file.tensor(prefix + "post_attention_layernorm.weight", "BF16", {8});
  file.tensor(prefix + "mlp.gate_proj.weight", type, {16, 8});
  file.tensor(prefix + "mlp.up_proj.weight", type, {16, 8});
  file.tensor(prefix + "mlp.down_proj.weight", type, {8, 16});
}

SafetensorsBuilder whole_model(const char* type = "BF16") {
  SafetensorsBuilder file;
  file.tensor("model.embed_tokens.weight", type, {10, 8});
  for (const int layer : {0, 1}) add_layer(file, layer, type);
  file.tensor("model.norm.weight", "BF16", {8});
  return file;
}

class OpenModelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(folder_);
    ::setenv("HF_HUB_CACHE", (folder_ / "cache").c_str(), 1);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return folder_ / name; }
  void write(const std::string& name, const std::string& text) const {
    fs::create_directories(fs::path(path(name)).parent_path());
    std::ofstream(path(name), std::ios::binary | std::ios::trunc) << text;
  }
  static std::string error_of(const std::string& name) {
    const auto model = open_model(name);
    return model ? "opened" : model.error().message + " [" + model.error().hint + "]";
  }

  fs::path folder_ = fs::temp_directory_path() / ("llmprof_open_model_" + std::to_string(::getpid()));
};

std::vector<std::string> fields(const std::vector<Caveat>& caveats) {
  std::vector<std::string> texts;
  for (const Caveat& caveat : caveats) texts.push_back(caveat.field + ": " + caveat.meaning);
  return texts;
}

TEST_F(OpenModelTest, AConfigAloneOrInItsFolder) {
  write("config.json", kConfig);
  for (const std::string& name : {path("config.json"), path("")}) {
    const auto model = open_model(name);
    ASSERT_TRUE(model) << model.error().message;
    EXPECT_EQ(parameters(Graph(model->config)), kParameters);
    EXPECT_EQ(model->config_text, kConfig);
    EXPECT_THAT(model->origin, HasSubstr("config.json"));
    EXPECT_FALSE(model->checkpoint);
  }
}

TEST_F(OpenModelTest, TheCheckpointGivesExactBytesPerModule) {
  write("config.json", kConfig);
  whole_model().write(path("model.safetensors"));
  for (const std::string& name : {path(""), path("model.safetensors")}) {
    const auto model = open_model(name);
    ASSERT_TRUE(model) << model.error().message;
    ASSERT_TRUE(model->checkpoint);
    EXPECT_EQ(model->checkpoint->parameters, kParameters);
    EXPECT_EQ(model->checkpoint->bytes, 2U * kParameters);
    EXPECT_EQ(model->checkpoint->tensors, 20);
    EXPECT_THAT(fields(model->config.caveats), IsEmpty());
    EXPECT_THAT(model->notes, IsEmpty());
    EXPECT_EQ(model->config.stored.at("layers.1.mlp.up_proj"), (Number{"bfloat16", 2}));
    EXPECT_EQ(model->config.stored.at("lm_head"), (Number{"bfloat16", 2}));  // tied
    EXPECT_EQ(weights_bytes(Graph(model->config)), 2.0 * kParameters);
  }
}

TEST_F(OpenModelTest, WhatTheFilesHoldCountsNotWhatTheConfigSays) {
  write("config.json", kConfig);
  whole_model("F32").write(path("model.safetensors"));
  const auto model = open_model(path(""));
  ASSERT_TRUE(model) << model.error().message;
  // 5 norms of 8 are bfloat16
  EXPECT_EQ(weights_bytes(Graph(model->config)), 4.0 * (kParameters - 40) + 2 * 40);
  EXPECT_EQ(model->config.weight.type, "float32");
  EXPECT_THAT(model->notes, Contains(HasSubstr("the config says bfloat16, most of the checkpoint is float32")));
}

TEST_F(OpenModelTest, PartsAreFoundByTheirIndex) {
  write("config.json", kConfig);
  SafetensorsBuilder first, second;
  first.tensor("model.embed_tokens.weight", "BF16", {10, 8});
  add_layer(first, 0);
  add_layer(second, 1);
  second.tensor("model.norm.weight", "BF16", {8});
  std::string map;
  for (const auto& [file, builder] : {std::pair{"a.safetensors", &first}, {"b.safetensors", &second}}) {
    builder->write(path(file));
    for (std::size_t at = builder->header.find("\"model."); at != std::string::npos;
         at = builder->header.find("\"model.", at + 1)) {
      const std::string name = builder->header.substr(at, builder->header.find('"', at + 1) - at + 1);
      map += (map.empty() ? "" : ",") + name + ":\"" + file + "\"";
    }
  }
  write("model.safetensors.index.json", R"({"metadata":{"total_size":2544},"weight_map":{)" + map + "}}");
  for (const std::string& name : {path(""), path("model.safetensors.index.json")}) {
    const auto model = open_model(name);
    ASSERT_TRUE(model) << model.error().message;
    EXPECT_EQ(model->checkpoint->parameters, kParameters);
    EXPECT_THAT(model->checkpoint->files, ::testing::ElementsAre("a.safetensors", "b.safetensors"));
    EXPECT_THAT(fields(model->config.caveats), IsEmpty());
    EXPECT_THAT(model->notes, IsEmpty());
  }

  write("model.safetensors.index.json", R"({"metadata":{"total_size":9},"weight_map":{)" + map + "}}");
  EXPECT_THAT(open_model(path(""))->notes, Contains("the index says 9 bytes, the files have 2544: the files count"));

  write("model.safetensors.index.json", R"({"weight_map":{"model.missing":"a.safetensors",)" + map + "}}");
  EXPECT_THAT(error_of(path("")), HasSubstr("a.safetensors: no tensor model.missing, which the index says is in it"));

  fs::remove(path("b.safetensors"));  // not downloaded: the names are known, and the sum
  write("model.safetensors.index.json", R"({"metadata":{"total_size":2544},"weight_map":{)" + map + "}}");
  const auto model = open_model(path(""));
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_FALSE(model->checkpoint->sizes_known);
  EXPECT_EQ(model->checkpoint->bytes, 2544U);
  EXPECT_THAT(fields(model->config.caveats), IsEmpty());
  EXPECT_THAT(model->config.stored, IsEmpty());
  EXPECT_THAT(model->notes, Contains(HasSubstr("1 of the 2 files of model.safetensors.index.json are not here")));
}

TEST_F(OpenModelTest, WhatDiffersIsSaid) {
  write("config.json", kConfig);
  SafetensorsBuilder file;
  file.tensor("model.embed_tokens.weight", "BF16", {10, 8});
  for (const int layer : {0, 1, 2}) add_layer(file, layer);  // one more than the config has
  file.tensor("lm_head.weight", "BF16", {10, 8});            // tied, and stored
  file.tensor("vision_tower.blocks.0.fc1.weight", "BF16", {100});
  file.tensor("model.layers.0.self_attn.q_norm.weight", "BF16", {4});
  file.tensor("model.layers.1.self_attn.q_norm.weight", "BF16", {4});
  file.write(path("model.safetensors"));
  const auto model = open_model(path(""));
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_THAT(
      fields(model->config.caveats),
      ::testing::ElementsAre(
          "norm: in the analysis (8 parameters), not in the checkpoint",
          "layers.*.self_attn.q_norm: in the checkpoint (2 tensors, 8 values, 16 B), not in the analysis: its "
          "costs are not counted",
          "layers.2.*: in the checkpoint (9 tensors, 592 values, 1.18 kB), not in the analysis (the config has 2 "
          "layers; next-token prediction?): its costs are not counted",
          "vision_tower.*: in the checkpoint (1 tensor, 100 values, 200 B), not in the analysis: its costs are "
          "not counted"));
  EXPECT_THAT(model->notes, Contains(HasSubstr("lm_head is stored although it is tied: 160 B")));
  EXPECT_EQ(model->checkpoint->parameters, kParameters - 8 + 592 + 100 + 8);  // lm_head once
}

TEST_F(OpenModelTest, AConfigOfAnotherModelIsNoticed) {
  write("config.json", kConfig);
  SafetensorsBuilder file;
  file.tensor("model.embed_tokens.weight", "BF16", {11, 8});
  file.write(path("model.safetensors"));
  const auto model = open_model(path(""));
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_THAT(fields(model->config.caveats),
              Contains("embed_tokens: 88 parameters in the checkpoint, 80 in the analysis: FLOPs follow the config"));
  EXPECT_THAT(
      fields(model->config.caveats),
      Contains("layers.*.mlp.up_proj: in the analysis (128 parameters in each of 2 layers), not in the checkpoint"));
}

// 4-bit values, eight in an I32, 128 values to a group in reality; here one group: scales and zeros for each column.
TEST_F(OpenModelTest, PartsOfAQuantisedMatrixBelongToItsModule) {
  write("config.json", kConfig);
  SafetensorsBuilder file = whole_model();
  const std::string text = file.header;
  SafetensorsBuilder packed;
  packed.tensor("model.layers.0.mlp.up_proj.qweight", "I32", {1, 16});  // 8 x 16 values in 64 bytes
  packed.tensor("model.layers.0.mlp.up_proj.qzeros", "I32", {1, 2});
  packed.tensor("model.layers.0.mlp.up_proj.scales", "F16", {1, 16});
  packed.tensor("model.layers.0.mlp.up_proj.g_idx", "I32", {8});
  packed.write(path("model.safetensors"));
  const auto model = open_model(path(""));
  ASSERT_TRUE(model) << model.error().message;
  const StoredModule& module = model->checkpoint->modules.at("layers.0.mlp.up_proj");
  EXPECT_EQ(module.bytes, 64U + 8 + 32 + 32);
  EXPECT_EQ(module.parameters, 128);  // of the analysis
  EXPECT_TRUE(module.packed);
  EXPECT_DOUBLE_EQ(model->config.stored.at("layers.0.mlp.up_proj").bytes, 136.0 / 128);
}

// MLX: 8 values of 4 bits in a U32, scales and biases of groups.
TEST_F(OpenModelTest, WeightsInsideIntegersArePacked) {
  write("config.json", kConfig);
  SafetensorsBuilder file;
  file.tensor("model.layers.0.mlp.up_proj.weight", "U32", {16, 1});
  file.tensor("model.layers.0.mlp.up_proj.scales", "F16", {16, 1});
  file.tensor("model.layers.0.mlp.up_proj.biases", "F16", {16, 1});
  file.write(path("model.safetensors"));
  SafetensorsBuilder().write(path("adapter_model.safetensors"));
  const auto model = open_model(path(""));
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_DOUBLE_EQ(model->config.stored.at("layers.0.mlp.up_proj").bytes, (64 + 32 + 32) / 128.0);
}

// ---- GGUF --------------------------------------------------------------------------------------------------------

// The same model; hidden 32 so that rows are whole blocks of Q8_0.
GgufBuilder llama_gguf() {
  GgufBuilder file;
  file.text("general.architecture", "llama");
  file.u32("llama.block_count", 2);
  file.u32("llama.embedding_length", 32);
  file.u32("llama.attention.head_count", 2);
  file.u32("llama.attention.head_count_kv", 1);
  file.u32("llama.feed_forward_length", 64);
  file.u32("llama.context_length", 128);
  return file;
}
void add_gguf_layer(GgufBuilder& file, int layer) {
  const std::string prefix = "blk." + std::to_string(layer) + ".";
  file.tensor(prefix + "attn_norm.weight", {32});
  file.tensor(prefix + "attn_q.weight", {32, 32}, 8);
  file.tensor(prefix + "attn_k.weight", {32, 16}, 8);
  file.tensor(prefix + "attn_v.weight", {32, 16}, 8);
  file.tensor(prefix + "attn_output.weight", {32, 32}, 8);
  file.tensor(prefix + "ffn_norm.weight", {32});
  file.tensor(prefix + "ffn_gate.weight", {32, 64}, 8);
  file.tensor(prefix + "ffn_up.weight", {32, 64}, 8);
  file.tensor(prefix + "ffn_down.weight", {64, 32}, 8);
}
// 64 norms, 2 x 1024 + 2 x 512 attention, 3 x 2048 MLP: 9280 per layer; 100 tokens.
constexpr std::int64_t kGgufParameters = 2 * 9280 + 3200 + 32;

TEST_F(OpenModelTest, AGgufFileIsConfigAndCheckpoint) {
  GgufBuilder file = llama_gguf();
  file.tensor("token_embd.weight", {32, 100}, 1);
  for (const int layer : {0, 1}) add_gguf_layer(file, layer);
  file.tensor("output_norm.weight", {32});
  file.tensor("rope_freqs.weight", {8});
  write("model.gguf", file.file());
  const auto model = open_model(path("model.gguf"));
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->config.family, "llama");
  EXPECT_TRUE(model->config.tied_embeddings);
  EXPECT_EQ(model->config.vocab, 100);
  EXPECT_EQ(parameters(Graph(model->config)), kGgufParameters);
  EXPECT_EQ(model->checkpoint->parameters, kGgufParameters);
  EXPECT_THAT(fields(model->config.caveats), IsEmpty());
  EXPECT_EQ(model->config.stored.at("layers.0.mlp.down_proj"), (Number{"q8_0", 34.0 / 32}));
  EXPECT_EQ(model->config.stored.at("layers.0.input_layernorm"), (Number{"float32", 4}));
  EXPECT_EQ(model->config.stored.at("lm_head"), (Number{"float16", 2}));
  EXPECT_EQ(model->checkpoint->buffer_bytes, 32U);
  // 2 layers x (9216 values of 34/32 bytes and 64 of 4), the table, the last norm
  EXPECT_DOUBLE_EQ(weights_bytes(Graph(model->config)), 2 * (9216 * 34.0 / 32 + 64 * 4) + 3200 * 2 + 32 * 4);
  EXPECT_EQ(model->config.kv.type, "float16");
  EXPECT_EQ(model->config.weight.type, "q8_0");
  EXPECT_THAT(model->notes, IsEmpty());
}

TEST_F(OpenModelTest, AFolderWithOneGgufModel) {
  GgufBuilder file = llama_gguf();
  file.tensor("token_embd.weight", {32, 100}, 1);
  write("a.gguf", file.file());
  EXPECT_EQ(error_of(path("")), "opened");
  write("b.gguf", file.file());
  EXPECT_THAT(error_of(path("")), HasSubstr("[2 .gguf files: give one"));
}

TEST_F(OpenModelTest, ASplitGgufIsOneModel) {
  GgufBuilder first = llama_gguf(), second;
  first.raw_key("split.no", 2, testing::le(std::uint16_t{0}));
  first.raw_key("split.count", 2, testing::le(std::uint16_t{2}));
  first.raw_key("split.tensors.count", 5, testing::le(21));
  first.tensor("token_embd.weight", {32, 100}, 1);
  first.tensor("output.weight", {32, 100}, 1);
  add_gguf_layer(first, 0);
  second.raw_key("split.no", 2, testing::le(std::uint16_t{1}));
  add_gguf_layer(second, 1);
  second.tensor("output_norm.weight", {32});
  write("m-00001-of-00002.gguf", first.file());
  EXPECT_THAT(error_of(path("m-00001-of-00002.gguf")), HasSubstr("m-00002-of-00002.gguf: No such file"));
  write("m-00002-of-00002.gguf", second.file());
  for (const std::string& name : {path("m-00001-of-00002.gguf"), path("m-00002-of-00002.gguf"), path("")}) {
    const auto model = open_model(name);
    ASSERT_TRUE(model) << model.error().message;
    EXPECT_EQ(model->checkpoint->parameters, kGgufParameters + 3200);
    EXPECT_FALSE(model->config.tied_embeddings);
    EXPECT_THAT(fields(model->config.caveats), IsEmpty());
    EXPECT_EQ(model->checkpoint->files.size(), 2U);
  }
  write("renamed.gguf", first.file());
  EXPECT_THAT(error_of(path("renamed.gguf")), HasSubstr("is a part of 2, and not named NAME-00001-of-00002.gguf"));
  second.tensor("blk.0.attn_norm.weight", {32});
  write("m-00002-of-00002.gguf", second.file());
  EXPECT_THAT(error_of(path("m-00001-of-00002.gguf")), HasSubstr("split.tensors.count is 21, the parts have 22"));
}

TEST_F(OpenModelTest, MetadataThatIsMissingOrStrangeIsNamed) {
  write("a.gguf", GgufBuilder().file());
  EXPECT_THAT(error_of(path("a.gguf")), HasSubstr("general.architecture is missing"));
  GgufBuilder some;
  some.text("general.architecture", "llama");
  write("a.gguf", some.file());
  EXPECT_THAT(error_of(path("a.gguf")), HasSubstr("llama.block_count is missing"));
  some.raw_key("llama.block_count", 11, testing::le(INT64_MIN));
  write("a.gguf", some.file());
  EXPECT_THAT(error_of(path("a.gguf")), HasSubstr("llama.block_count is not a whole number"));
  GgufBuilder lists = llama_gguf();
  lists.numbers("llama.attention.key_length", {16, 16});
  lists.numbers("llama.attention.sliding_window", {16, 32});
  write("a.gguf", lists.file());
  EXPECT_THAT(error_of(path("a.gguf")), HasSubstr("llama.attention.sliding_window differs between layers"));
  GgufBuilder other;
  other.text("general.architecture", "strange\x1b[2J");
  write("a.gguf", other.file());
  EXPECT_THAT(error_of(path("a.gguf")), ::testing::Not(HasSubstr("\x1b")));
}

// ---- names and places --------------------------------------------------------------------------------------------

TEST_F(OpenModelTest, TheLocalCacheOfTheHub) {
  const std::string repository = "cache/models--org--tiny-model";
  write(repository + "/snapshots/aaa/config.json", "not this one");
  write(repository + "/blobs/123", kConfig);
  fs::create_directories(path(repository + "/snapshots/bbb"));
  fs::create_symlink("../../blobs/123", path(repository + "/snapshots/bbb/config.json"));
  write(repository + "/refs/main", "bbb\n");
  for (const std::string& name : {std::string("org/tiny-model"), path(repository)}) {
    const auto model = open_model(name);
    ASSERT_TRUE(model) << model.error().message;
    EXPECT_EQ(parameters(Graph(model->config)), kParameters);
    EXPECT_THAT(model->origin, HasSubstr("snapshots/bbb/config.json"));
  }
  write(repository + "/refs/main", "../../../../etc");
  EXPECT_THAT(error_of("org/tiny-model"), ::testing::Not(HasSubstr("etc")));
  EXPECT_THAT(error_of("org/other-model"),
              HasSubstr("not a built-in name, a file, or a model in the local Hugging Face"));
  EXPECT_THAT(error_of("org/other-model"), HasSubstr("Nothing is fetched"));
  EXPECT_THAT(error_of("org/../../etc"), HasSubstr("not a built-in name"));
}

TEST_F(OpenModelTest, BuiltInNames) {
  const auto model = open_model("gpt2");
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(parameters(Graph(model->config)), 124'439'808);
  EXPECT_THAT(model->origin, HasSubstr("built-in name gpt2"));
  EXPECT_THAT(error_of("gpt3"), HasSubstr("did you mean gpt2"));
}

TEST_F(OpenModelTest, OtherFilesAreNamed) {
  EXPECT_THAT(error_of(""), HasSubstr("empty"));
  EXPECT_THAT(error_of("/dev/zero"), HasSubstr("a device, not a regular file"));
  ASSERT_EQ(::mkfifo(path("fifo.json").c_str(), 0600), 0);
  EXPECT_THAT(error_of(path("fifo.json")), HasSubstr("a pipe, not a regular file"));
  EXPECT_THAT(error_of(path("")), HasSubstr("no config.json in this folder"));
  write("x.json", "");
  EXPECT_THAT(error_of(path("x.json")), HasSubstr("empty, expected a config.json"));
  write("x.json", "x");
  EXPECT_THAT(error_of(path("x.json")), HasSubstr("not a config.json"));
  write("x.bin", "PK\x03\x04" + std::string(60, 'x'));
  EXPECT_THAT(error_of(path("x.bin")), HasSubstr("this is a zip archive, expected a config.json"));
  write("x.gguf", "PK\x03\x04" + std::string(60, 'x'));
  EXPECT_THAT(error_of(path("x.gguf")), HasSubstr("this is a zip archive, expected a GGUF file"));
  write("x.safetensors", "\x1f\x8b\x08" + std::string(60, 'x'));
  EXPECT_THAT(error_of(path("x.safetensors")), HasSubstr("this is gzip data, expected a safetensors file"));
  whole_model().write(path("y.safetensors"));
  EXPECT_THAT(error_of(path("y.safetensors")), HasSubstr("no config.json beside it"));
  fs::create_symlink(path("gone"), path("dangling"));
  EXPECT_THAT(error_of(path("dangling")), HasSubstr("No such file"));
  if (::geteuid() != 0) {
    fs::permissions(path("x.json"), fs::perms::none);
    EXPECT_THAT(error_of(path("x.json")), HasSubstr("Permission denied"));
  }
}

TEST_F(OpenModelTest, PicklesAndPartsWithoutAnIndexAreNotRead) {
  write("config.json", kConfig);
  write("pytorch_model.bin", "\x80\x02");
  EXPECT_THAT(open_model(path(""))->notes, Contains(HasSubstr("a pickle, which is code: not read")));
  write("a.safetensors", "");
  write("b.safetensors", "");
  EXPECT_THAT(open_model(path(""))->notes, Contains("2 .safetensors files without an index: not read"));
}

}  // namespace
}  // namespace llmprof::model
