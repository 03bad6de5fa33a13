// quantization_config of the usual methods, and which modules they leave alone. Bytes are derived beside them.

#include "model/quantization.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/json.h"
#include "model/memory.h"
#include "model/model.h"

namespace llmprof::model {
namespace {

// Two layers, hidden 64, heads 4 and 2 of 16, width 128, 100 words.
Config tiny(const std::string& quantization) {
  const std::string text = R"({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64,
      "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 128, "vocab_size": 100,
      "torch_dtype": "bfloat16", "quantization_config": )" +
                           quantization + "}";
  Result<Config> config = parse_config(text, "config.json");
  EXPECT_TRUE(config) << config.error().message;
  return config ? std::move(*config) : Config{};
}

Quantization read(const std::string& text) {
  const Config config = tiny(text);
  EXPECT_TRUE(config.caveats.empty()) << config.caveats.front().field << ": " << config.caveats.front().meaning;
  return config.quantization.value_or(Quantization{});
}

std::string caveats_of(const std::string& text) {
  std::string all;
  for (const Caveat& caveat : tiny(text).caveats) all += caveat.field + ": " + caveat.meaning + "\n";
  return all;
}

TEST(Quantization, Fp8) {
  // DeepSeek-V3's: a float32 for each block of 128 x 128.
  const Quantization blocks = read(R"({"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128],
                                       "activation_scheme": "dynamic"})");
  EXPECT_EQ(blocks.weight, (Number{"float8_e4m3", 1 + 4.0 / 16384}));
  EXPECT_EQ(blocks.arithmetic, "float8_e4m3");
  EXPECT_EQ(read(R"({"quant_method": "fbgemm_fp8"})").weight, (Number{"float8_e4m3", 1}));
}

TEST(Quantization, GptqAndAwq) {
  // 4 bits; for 128 of them a float16 scale and a zero point of 4 bits: 0.5 + 2.5/128.
  for (const char* method : {"gptq", "awq", "auto-round"}) {
    const Quantization four = read(fmt::format(R"({{"quant_method": "{}", "bits": 4, "group_size": 128}})", method));
    EXPECT_EQ(four.weight, (Number{"int4", 0.51953125})) << method;
    EXPECT_EQ(four.arithmetic, "");
  }
  EXPECT_EQ(read(R"({"quant_method": "gptq", "bits": 8, "group_size": -1})").weight, (Number{"int8", 1}));
  EXPECT_EQ(read(R"({"bits": 4, "group_size": 32, "sym": true})").weight, (Number{"int4", 0.578125}));  // no method
  const Quantization dynamic =
      read(R"({"quant_method": "gptq", "bits": 4, "dynamic": {"-:.*down.*": {}}, "desc_act": true})");
  EXPECT_THAT(dynamic.ignore, ::testing::ElementsAre("re:.*down.*"));
}

TEST(Quantization, Bitsandbytes) {
  // 64 weights share a float32.
  const Quantization once = read(R"({"quant_method": "bitsandbytes", "load_in_4bit": true})");
  EXPECT_EQ(once.weight, (Number{"float4_e2m1", 0.5625}));
  EXPECT_EQ(once.arithmetic, "float32");  // the library's default
  // 64 share 8 bits, 64·256 a float32: 0.5 + 1/64 + 4/16384.
  const Quantization twice = read(R"({"quant_method": "bitsandbytes", "_load_in_4bit": true, "load_in_4bit": true,
      "bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": true, "bnb_4bit_compute_dtype": "bfloat16"})");
  EXPECT_EQ(twice.weight, (Number{"nf4", 0.515869140625}));
  EXPECT_EQ(twice.arithmetic, "bfloat16");
  const Quantization eight = read(R"({"load_in_8bit": true, "llm_int8_skip_modules": ["lm_head"]})");
  EXPECT_EQ(eight.weight, (Number{"int8", 1}));
  EXPECT_EQ(eight.arithmetic, "int8");
}

TEST(Quantization, CompressedTensors) {
  const auto group = [](const std::string& weights, const std::string& inputs) {
    return read(R"({"quant_method": "compressed-tensors", "config_groups": {"group_0": {"targets": ["Linear"],
        "weights": )" +
                weights + R"(, "input_activations": )" + inputs + R"(}}, "ignore": ["lm_head"]})");
  };
  const Quantization fp8 = group(R"({"num_bits": 8, "type": "float", "strategy": "channel", "symmetric": true})",
                                 R"({"num_bits": 8, "type": "float", "dynamic": true})");
  EXPECT_EQ(fp8.weight, (Number{"float8_e4m3", 1}));
  EXPECT_EQ(fp8.arithmetic, "float8_e4m3");
  const Quantization w8a8 = group(R"({"num_bits": 8, "type": "int"})", R"({"num_bits": 8, "type": "int"})");
  EXPECT_EQ(w8a8.weight, (Number{"int8", 1}));
  EXPECT_EQ(w8a8.arithmetic, "int8");
  // 128 share a scale of 16 bits: 0.5 + 2/128; not symmetric: and a zero point of 4 bits.
  EXPECT_EQ(group(R"({"num_bits": 4, "type": "int", "group_size": 128})", "null").weight, (Number{"int4", 0.515625}));
  EXPECT_EQ(group(R"({"num_bits": 4, "type": "int", "group_size": 128, "symmetric": false})", "null").weight,
            (Number{"int4", 0.51953125}));
  const Quantization nvfp4 = group(R"({"num_bits": 4, "type": "float", "group_size": 16, "strategy": "tensor_group"})",
                                   R"({"num_bits": 4, "type": "float", "group_size": 16})");
  EXPECT_EQ(nvfp4.weight, (Number{"nvfp4", 0.5625}));
  EXPECT_EQ(nvfp4.arithmetic, "float4_e2m1");
  EXPECT_EQ(
      group(R"({"num_bits": 8, "type": "float", "strategy": "block", "block_structure": [128, 128]})", "null").weight,
      (Number{"float8_e4m3", 1 + 4.0 / 16384}));
}

TEST(Quantization, GroupsOfSeveralTypesAreABound) {
  const std::string text = R"({"quant_method": "compressed-tensors", "config_groups": {
      "a": {"targets": ["re:.*mlp.*"], "weights": {"num_bits": 4, "type": "int"}},
      "b": {"targets": ["re:.*self_attn.*"], "weights": {"num_bits": 8, "type": "int"}}}})";
  EXPECT_EQ(caveats_of(text),
            "quantization_config.config_groups: several types: the widest is taken for all, bytes are upper bounds\n");
  EXPECT_EQ(tiny(text).quantization->weight, (Number{"int8", 1}));
  EXPECT_EQ(caveats_of(R"({"quant_method": "compressed-tensors", "config_groups": {}})"),
            "quantization_config.config_groups: no group with weights: matrices are counted as not quantised\n");
}

TEST(Quantization, Mxfp4IsAboutExperts) {
  const Quantization mxfp4 = read(R"({"quant_method": "mxfp4", "modules_to_not_convert":
      ["model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]})");
  EXPECT_EQ(mxfp4.weight, (Number{"mxfp4", 0.53125}));  // 32 share 8 bits
  EXPECT_EQ(mxfp4.arithmetic, "");
  EXPECT_TRUE(covers(mxfp4, "layers.3.mlp.experts.gate_up_proj"));
  EXPECT_FALSE(covers(mxfp4, "layers.3.self_attn.q_proj"));
}

TEST(Quantization, BiasesStayAsTheyAre) {
  // openai/gpt-oss-20b, total_size of its model.safetensors.index.json: 13,761,264,768 bytes.
  // Experts: 24·32·(2880·5760 + 2880·2880) = 19,110,297,600 weights of 0.53125; the other 1,804,459,584 values in
  // bfloat16, among them the experts' 24·32·(5760 + 2880) biases.
  const Result<Config> config = parse_config(R"({"model_type": "gpt_oss", "num_hidden_layers": 24, "hidden_size": 2880,
      "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64, "intermediate_size": 2880, "vocab_size": 201088,
      "num_local_experts": 32, "num_experts_per_tok": 4, "torch_dtype": "bfloat16", "quantization_config": {"quant_method":
      "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn", "model.layers.*.mlp.router", "lm_head"]}})",
                                             "config.json");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_NEAR(weights_bytes(Graph(*config)), 13'761'264'768.0, 1);
}

TEST(Quantization, Mlx) {
  // 64 share two values of 16 bits: 0.5 + 4/64.
  const std::string text = R"({"group_size": 64, "bits": 4, "mode": "affine"})";
  EXPECT_EQ(tiny(text).quantization->weight, (Number{"int4", 0.5625}));
  EXPECT_EQ(caveats_of(text),
            "quantization_config.bits: tables and the logits' matrix are counted as not quantised: bytes are upper "
            "bounds\n");
}

TEST(Quantization, TorchAo) {
  EXPECT_EQ(read(R"({"quant_method": "torchao", "quant_type": "int8_weight_only"})").weight, (Number{"int8", 1}));
  const Quantization dynamic = read(R"({"quant_method": "torchao", "quant_type": {"default":
      {"_type": "Float8DynamicActivationFloat8WeightConfig", "_data": {}}}})");
  EXPECT_EQ(dynamic.weight, (Number{"float8_e4m3", 1}));
  EXPECT_EQ(dynamic.arithmetic, "float8_e4m3");
  // Scale and zero point of 16 bits for 64: 0.5 + 4/64.
  EXPECT_EQ(read(R"({"quant_method": "torchao", "quant_type": {"default": {"_type": "Int4WeightOnlyConfig",
                     "_data": {"group_size": 64}}}})")
                .weight,
            (Number{"int4", 0.5625}));
}

TEST(Quantization, ModelOpt) {
  const std::string nvfp4 = R"({"quant_method": "modelopt", "quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8",
      "ignore": ["lm_head", "model.layers.0*"]})";
  EXPECT_EQ(read(nvfp4).weight, (Number{"nvfp4", 0.5625}));
  EXPECT_EQ(read(nvfp4).arithmetic, "float4_e2m1");
  EXPECT_EQ(tiny(nvfp4).kv, (Number{"float8_e4m3", 1}));
  EXPECT_FALSE(covers(read(nvfp4), "layers.0.mlp.up_proj"));
  EXPECT_TRUE(covers(read(nvfp4), "layers.1.mlp.up_proj"));
  EXPECT_EQ(read(R"({"quant_algo": "FP8", "quant_method": "modelopt"})").arithmetic, "float8_e4m3");
  EXPECT_EQ(read(R"({"quant_algo": "W4A16_AWQ", "group_size": 128})").weight, (Number{"int4", 0.515625}));
}

TEST(Quantization, QuarkAndOthers) {
  const Quantization quark = read(R"({"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "fp8_e4m3",
      "qscheme": "per_tensor"}, "input_tensors": {"dtype": "fp8_e4m3"}}, "exclude": ["lm_head"]})");
  EXPECT_EQ(quark.weight, (Number{"float8_e4m3", 1}));
  EXPECT_EQ(quark.arithmetic, "float8_e4m3");
  const Quantization mxfp4 = read(R"({"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "fp4",
      "qscheme": "per_group", "group_size": 32}}})");
  EXPECT_EQ(mxfp4.weight.bytes, 0.53125);
  EXPECT_EQ(read(R"({"quant_method": "hqq", "quant_config": {"weight_quant_params": {"nbits": 4, "group_size": 64}}})")
                .weight,
            (Number{"int4", 0.5625}));
  EXPECT_EQ(read(R"({"quant_method": "quanto", "weights": "int8"})").weight, (Number{"int8", 1}));
  EXPECT_EQ(read(R"({"quant_method": "bitnet"})").weight, (Number{"int2", 0.25}));
}

TEST(Quantization, AnUnknownMethodIsABound) {
  const std::string text = R"({"quant_method": "wavelet"})";
  EXPECT_EQ(
      caveats_of(text),
      "quantization_config.quant_method: \"wavelet\" is not understood: matrices are counted as not quantised, bytes "
      "are upper bounds\n");
  EXPECT_EQ(tiny(text).quantization->weight, (Number{"bfloat16", 2}));
}

TEST(Quantization, BadValuesNameTheirPlace) {
  const auto error = [](const std::string& quantization) {
    const std::string text = R"({"model_type": "gpt2", "n_layer": 1, "n_embd": 8, "n_head": 2, "n_positions": 4,
        "vocab_size": 5, "quantization_config": )" +
                             quantization + "}";
    const Result<Config> config = parse_config(text, "config.json");
    EXPECT_FALSE(config) << quantization;
    return config ? "" : config.error().message;
  };
  EXPECT_EQ(error(R"({"quant_method": "gptq", "bits": 99})"),
            "config.json: quantization_config.bits: 99 bits are not supported");
  EXPECT_EQ(error(R"({"quant_method": "gptq", "bits": "4"})"),
            "config.json: quantization_config.bits: \"4\" is not a whole number from 1 to 2147483648");
  EXPECT_EQ(error(R"({"quant_method": "awq", "modules_to_not_convert": "lm_head"})"),
            "config.json: quantization_config.modules_to_not_convert: \"lm_head\" is not a list of strings");
}

TEST(Quantization, TheCache) {
  const auto kv = [](const std::string& scheme) {
    return tiny(R"({"quant_method": "fp8", "kv_cache_scheme": )" + scheme + "}").kv;
  };
  EXPECT_EQ(kv(R"({"num_bits": 8, "type": "float", "strategy": "tensor"})"), (Number{"float8_e4m3", 1}));
  EXPECT_EQ(kv(R"({"num_bits": 8, "type": "int"})"), (Number{"int8", 1}));
  EXPECT_EQ(kv("null"), (Number{"bfloat16", 2}));
}

// ---- which modules -----------------------------------------------------------------------------------------

Quantization ignoring(std::vector<std::string> names) {
  return {.method = "", .weight = {}, .arithmetic = "", .ignore = std::move(names), .only = {}};
}

TEST(Coverage, NamesArePartsOfPaths) {
  constexpr std::string_view kUp = "layers.12.mlp.up_proj", kGate = "layers.12.mlp.gate";
  EXPECT_TRUE(covers(ignoring({}), kUp));
  EXPECT_FALSE(covers(ignoring({"up_proj"}), kUp));
  EXPECT_TRUE(covers(ignoring({"up"}), kUp));
  EXPECT_FALSE(covers(ignoring({"gate"}), kGate));
  EXPECT_TRUE(covers(ignoring({"gate"}), "layers.12.mlp.gate_proj"));
  EXPECT_FALSE(covers(ignoring({"model.layers.12.mlp.up_proj"}), kUp));
  EXPECT_FALSE(covers(ignoring({"model.layers.12"}), kUp));
  EXPECT_FALSE(covers(ignoring({"model.language_model.layers.12.mlp"}), kUp));
  EXPECT_TRUE(covers(ignoring({"model.layers.1"}), kUp));
  EXPECT_TRUE(covers(ignoring({"layers.12.mlp.up_proj.weight"}), kUp));
  EXPECT_FALSE(covers(ignoring({"mlp.up_proj"}), kUp));
  EXPECT_TRUE(covers(ignoring({""}), kUp));
}

TEST(Coverage, Stars) {
  constexpr std::string_view kQ = "layers.12.self_attn.q_proj";
  EXPECT_FALSE(covers(ignoring({"model.layers.*.self_attn"}), kQ));
  EXPECT_FALSE(covers(ignoring({"*self_attn*"}), kQ));
  EXPECT_FALSE(covers(ignoring({"model.layers.1*"}), kQ));
  EXPECT_FALSE(covers(ignoring({"*q_proj"}), kQ));
  EXPECT_FALSE(covers(ignoring({"self_attn.*_proj"}), kQ));
  EXPECT_TRUE(covers(ignoring({"model.layers.2*"}), kQ));
  EXPECT_TRUE(covers(ignoring({"model.layers.*.mlp"}), kQ));
}

TEST(Coverage, Patterns) {
  constexpr std::string_view kQ = "layers.12.self_attn.q_proj", kExpert = "layers.3.mlp.experts.up_proj";
  EXPECT_FALSE(covers(ignoring({"re:.*self_attn.*"}), kQ));
  EXPECT_FALSE(covers(ignoring({R"(re:model\.layers\.\d+\.self_attn)"}), kQ));
  EXPECT_FALSE(covers(ignoring({R"(re:language_model\.model\.layers.*q_proj$)"}), kQ));
  EXPECT_TRUE(covers(ignoring({"re:self_attn"}), kQ));  // not at the beginning
  EXPECT_FALSE(covers(ignoring({"re:.*nothing|layers.12"}), kQ));
  EXPECT_FALSE(covers(ignoring({"re:.*nothing|model.layers.12"}), kQ));
  EXPECT_FALSE(covers(ignoring({R"(re:.*experts\.\d+\.up_proj)"}), kExpert));
  EXPECT_TRUE(covers(ignoring({R"(re:.*mlp\.(gate|up|down)_proj.*)"}), kExpert));
}

TEST(Coverage, WhatIsNotUnderstoodIsSaid) {
  const std::string text = R"({"quant_method": "fp8", "ignore": ["lm_head", "re:(?!x).*", "re:(?!y).*"]})";
  EXPECT_EQ(
      caveats_of(text),
      "quantization_config.ignore: 2 of 3 entries are not understood, the first is \"re:(?!x).*\": weight bytes are "
      "rough\n");
  EXPECT_THAT(tiny(text).quantization->ignore, ::testing::ElementsAre("lm_head"));
}

TEST(Coverage, LongListsAreBounded) {
  base::Json many = base::Json::array();
  for (int i = 0; i < 20'000; ++i) many.push_back("model.layers." + std::to_string(i) + ".mlp.up_proj");
  const Config config = tiny(R"({"quant_method": "fp8", "ignore": )" + base::to_line(many) + "}");
  EXPECT_EQ(config.quantization->ignore.size(), 10'000u);
  ASSERT_EQ(config.caveats.size(), 1u);
  EXPECT_FALSE(covers(*config.quantization, "layers.1.mlp.up_proj"));
  EXPECT_TRUE(covers(*config.quantization, "layers.1.mlp.down_proj"));
}

TEST(Coverage, InTheGraph) {
  const Config config = tiny(R"({"quant_method": "fp8", "ignore": ["model.layers.1.mlp.up_proj", "re:.*o_proj$"]})");
  std::map<std::string, OpCost> at;
  for (const OpCost& cost : analyze(Graph(config), prefill(1, 4), {})) at[cost.module] = cost;
  EXPECT_EQ(at.at("layers.0.mlp.up_proj").weight_bytes, 64 * 128);
  EXPECT_EQ(at.at("layers.1.mlp.up_proj").weight_bytes, 64 * 128 * 2);
  EXPECT_EQ(at.at("layers.0.self_attn.o_proj").weight_bytes, 64 * 64 * 2);
  EXPECT_EQ(at.at("lm_head").weight_bytes, 64 * 100 * 2);
  EXPECT_EQ(at.at("layers.0.mlp.up_proj").arithmetic, "float8_e4m3");
  EXPECT_EQ(at.at("layers.1.mlp.up_proj").arithmetic, "bfloat16");
}

}  // namespace
}  // namespace llmprof::model
