// config.json: what is read, what is refused and with which words. Families have their own tests.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "model/model.h"

namespace llmprof::model {
namespace {

using ::testing::HasSubstr;

constexpr const char* kLlama =
    R"({"model_type": "llama", "hidden_size": 2048, "num_hidden_layers": 16,
  "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64, "intermediate_size": 8192,
  "vocab_size": 128256, "tie_word_embeddings": true, "torch_dtype": "bfloat16", "max_position_embeddings": 131072,
  "rope_scaling": {"factor": 32.0}, "attention_bias": false})";
constexpr const char* kGpt2 =
    R"({"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "n_inner": null,
  "n_positions": 1024, "vocab_size": 50257})";

// kLlama or kGpt2 with one key replaced (a null value removes it).
std::string with(const std::string& text, const std::string& key, const base::Json& value) {
  base::Json json = *base::parse_json(text, "base");
  if (value.is_null()) {
    json.erase(key);
  } else {
    json[key] = value;
  }
  return base::to_line(json);
}

Config config_of(const std::string& text) {
  Result<Config> config = parse_config(text, "config.json");
  EXPECT_TRUE(config) << config.error().message;
  return config ? std::move(*config) : Config{};
}

Error error_of(const std::string& text) {
  const Result<Config> config = parse_config(text, "config.json");
  EXPECT_FALSE(config) << text;
  return config ? Error{} : config.error();
}

std::string caveats_of(const std::string& text) {
  std::string all;
  for (const Caveat& caveat : config_of(text).caveats) all += caveat.field + ": " + caveat.meaning + "\n";
  return all;
}

std::string notes_of(const std::string& text) {
  std::string all;
  for (const Caveat& note : config_of(text).notes) all += note.field + ": " + note.meaning + "\n";
  return all;
}

TEST(ParseConfig, Llama) {
  const Config config = config_of(kLlama);
  EXPECT_EQ(parameters(Graph(config)), 1'235'814'400);
  EXPECT_EQ(config.weight, (Number{"bfloat16", 2}));
  EXPECT_EQ(config.kv, (Number{"bfloat16", 2}));
  EXPECT_EQ(config.activation, (Number{"bfloat16", 2}));
  EXPECT_EQ(config.arithmetic, "bfloat16");
  EXPECT_TRUE(config.tied_embeddings);
  EXPECT_TRUE(config.caveats.empty());
}

TEST(ParseConfig, Gpt2) {
  const Config config = config_of(kGpt2);
  EXPECT_EQ(parameters(Graph(config)), 124'439'808);
  EXPECT_EQ(config.kinds.at(0).mlp.width, 4 * 768);
  EXPECT_EQ(config.weight, (Number{"float32", 4}));
  EXPECT_EQ(config_of(with(kGpt2, "n_inner", 1000)).kinds.at(0).mlp.width, 1000);
}

TEST(ParseConfig, Defaults) {
  const auto attention = [](const std::string& text) { return config_of(text).kinds.at(0).attention; };
  EXPECT_EQ(attention(with(kLlama, "num_key_value_heads", nullptr)).kv_heads, 32);
  EXPECT_EQ(attention(with(kLlama, "head_dim", nullptr)).qk_dim,
            64);  // 2048 / 32
  EXPECT_EQ(attention(with(kLlama, "head_dim", 128)).qk_dim, 128);
  EXPECT_FALSE(config_of(with(kLlama, "tie_word_embeddings", nullptr)).tied_embeddings);
  EXPECT_EQ(config_of(with(kLlama, "torch_dtype", nullptr)).weight.type, "float32");
}

TEST(ParseConfig, OlderAndNewerKeysMeanTheSame) {
  EXPECT_EQ(config_of(with(kLlama, "dtype", "float16")).weight.type,
            "float16");  // the newer key wins
  EXPECT_EQ(config_of(with(kLlama, "torch_dtype", "torch.float16")).weight.type, "float16");
  std::string newer = with(with(kLlama, "torch_dtype", nullptr), "rope_scaling", nullptr);
  newer = with(with(newer, "dtype", "bfloat16"), "rope_parameters", base::Json{{"rope_type", "llama3"}});
  const Config a = config_of(kLlama), b = config_of(newer);
  EXPECT_EQ(a.kinds, b.kinds);
  EXPECT_EQ(a.weight, b.weight);
  EXPECT_TRUE(b.caveats.empty());
}

// ---- nested configs ------------------------------------------------------------------------------------------------

TEST(ParseConfig, TheLanguageModelOfALargerOne) {
  const base::Json inner = *base::parse_json(with(kLlama, "torch_dtype", nullptr), "inner");
  for (const char* key : {"text_config", "language_config", "llm_config"}) {
    const base::Json outer{{"model_type", "llava"},
                           {key, inner},
                           {"vision_config", {{"hidden_size", 1024}}},
                           {"torch_dtype", "float16"},
                           {"image_token_index", 32000}};
    const std::string text = base::to_line(outer);
    const Config config = config_of(text);
    EXPECT_EQ(parameters(Graph(config)), 1'235'814'400) << key;
    EXPECT_EQ(config.weight.type, "float16");
    EXPECT_TRUE(config.caveats.empty());
    EXPECT_EQ(notes_of(text), "vision_config: not analysed: all numbers are the language model's\n");
  }
}

TEST(ParseConfig, WhatIsSaidTwiceCountsFromInside) {
  const base::Json inner = *base::parse_json(kLlama, "inner");  // bfloat16, tied
  const base::Json outer{
      {"model_type", "llava"}, {"text_config", inner}, {"torch_dtype", "float16"}, {"tie_word_embeddings", false}};
  const Config config = config_of(base::to_line(outer));
  EXPECT_EQ(config.weight.type, "bfloat16");
  EXPECT_TRUE(config.tied_embeddings);
  EXPECT_TRUE(config.caveats.empty());
}

TEST(ParseConfig, ANestedConfigLeavesOutWhatItsClassSays) {
  // As google/gemma-3-4b-it has it. Heads, their size and the vocabulary are those of Gemma3TextConfig.
  const Config config = config_of(
      R"({"model_type": "gemma3", "torch_dtype": "bfloat16", "text_config": {"hidden_size": 2560,
      "intermediate_size": 10240, "model_type": "gemma3_text", "num_hidden_layers": 34, "sliding_window": 1024}})");
  EXPECT_EQ(config.vocab, 262208);
  EXPECT_EQ(config.kinds.at(0).attention.heads, 8);
  EXPECT_EQ(config.kinds.at(0).attention.kv_heads, 4);
  EXPECT_EQ(config.kinds.at(0).attention.qk_dim, 256);
  EXPECT_EQ(parameters(Graph(config)), 3'880'263'168);
  // A file of its own says its sizes: what is missing there is missing.
  EXPECT_EQ(error_of(R"({"model_type": "gemma3_text", "hidden_size": 2560, "num_hidden_layers": 34})").message,
            "config.json: vocab_size is missing");
}

TEST(ParseConfig, ErrorsInsideANestedConfigNameIt) {
  EXPECT_EQ(error_of(R"({"model_type": "gemma3", "text_config": {"num_hidden_layers": -1}})").message,
            "config.json: text_config.num_hidden_layers: -1 is not a whole number "
            "from 1 to 100000");
}

// ---- bad input -----------------------------------------------------------------------------------------------------

TEST(ParseConfig, ErrorsNameTheKeyAndTheValue) {
  EXPECT_EQ(error_of(with(kLlama, "hidden_size", nullptr)).message, "config.json: hidden_size is missing");
  EXPECT_EQ(error_of(with(kLlama, "hidden_size", nullptr)).code, ErrorCode::kCorruptInput);
  EXPECT_EQ(error_of(with(kLlama, "num_attention_heads", 0)).message,
            "config.json: num_attention_heads: 0 is not a whole number from 1 "
            "to 65536");
  EXPECT_EQ(error_of(with(kLlama, "num_attention_heads", -32)).message,
            "config.json: num_attention_heads: -32 is not a whole number from "
            "1 to 65536");
  EXPECT_EQ(error_of(with(kLlama, "vocab_size", (std::int64_t{1} << 31) + 1)).message,
            "config.json: vocab_size: 2147483649 is not a whole number from 1 to "
            "2147483648");
  EXPECT_EQ(error_of(with(kLlama, "vocab_size", UINT64_MAX)).message,
            "config.json: vocab_size: 18446744073709551615 is not a whole "
            "number from 1 to 2147483648");
  EXPECT_EQ(error_of(with(kLlama, "hidden_size", "2048")).message,
            "config.json: hidden_size: \"2048\" is not a whole number from 1 "
            "to 16777216");
  EXPECT_EQ(error_of(with(kLlama, "hidden_size", 2048.5)).message,
            "config.json: hidden_size: 2048.5 is not a whole number from 1 to "
            "16777216");
  EXPECT_EQ(error_of(with(kGpt2, "n_layer", 1'000'000)).message,
            "config.json: n_layer: 1000000 is not a whole number from 1 to 100000");
  EXPECT_EQ(error_of(with(kLlama, "tie_word_embeddings", "yes")).message,
            "config.json: tie_word_embeddings: \"yes\" is not true or false");
  EXPECT_EQ(error_of(with(kLlama, "layer_types", "full_attention")).message,
            "config.json: layer_types: \"full_attention\" is not a list of strings");
  EXPECT_EQ(error_of(with(kLlama, "layer_types", base::Json::array({"full_attention"}))).message,
            "config.json: layer_types: 1 entries for 16 layers");
  EXPECT_EQ(error_of(with(kLlama, "num_key_value_heads", 5)).message,
            "config.json: num_attention_heads: 32 is not divisible by "
            "num_key_value_heads = 5");
  EXPECT_EQ(error_of(with(kGpt2, "n_head", 7)).message, "config.json: n_embd: 768 is not divisible by n_head = 7");
  EXPECT_EQ(error_of(with(kLlama, "torch_dtype", "int3")).message,
            "config.json: torch_dtype: \"int3\" is not supported");
  EXPECT_EQ(error_of(with(kLlama, "quantization_config", "fp8")).message,
            "config.json: quantization_config: not a JSON object");
}

TEST(ParseConfig, SizesThatMultiplyToNonsenseAreRefused) {
  std::string text = with(kLlama, "hidden_size", 1 << 24);
  text = with(text, "intermediate_size", 1 << 26);
  EXPECT_EQ(error_of(text).message, "config.json: the sizes make a model of up to 5.4e+16 parameters");
}

TEST(ParseConfig, NotAConfig) {
  EXPECT_EQ(error_of("").message, "config.json:byte 1: not valid JSON");
  EXPECT_EQ(error_of(std::string("{\"n\\")).message, "config.json:byte 5: not valid JSON");  // ends in an escape
  EXPECT_EQ(error_of("[1]").message, "config.json: not a JSON object");
  EXPECT_EQ(error_of("{}").message, "config.json: model_type is missing");
  EXPECT_EQ(error_of(R"({"model_type": 7})").message, "config.json: model_type: 7 is not a string");
  EXPECT_THAT(error_of("{\"model_type\": \"a\\u0000\\u001b[31m\"}").message, HasSubstr("\\x1b"));
}

TEST(ParseConfig, TooMuchIsRefusedBeforeItIsParsed) {
  EXPECT_EQ(error_of(std::string(100'000'000, ' ')).message, "config.json: 100 MB, at most 16 MB are read");
  std::string many = "{";
  for (int i = 0; i < 10'001; ++i) many += "\"k" + std::to_string(i) + "\":0,";
  EXPECT_EQ(error_of(many + "\"z:\\\":\":0}").message, "config.json: 10002 keys, at most 10000 are read");
  std::string deep = R"({"model_type": "llama", "x": )";
  EXPECT_EQ(error_of(deep + std::string(1'000'000, '[')).message.substr(0, 11), "config.json");
  EXPECT_EQ(error_of(deep + std::string(300, '[') + std::string(300, ']') + "}").message,
            "config.json: JSON nested deeper than 256");
}

TEST(ParseConfig, EveryPrefixAndEveryReplacedValueIsAnErrorNotACrash) {
  const std::string whole = kLlama;
  for (std::size_t length = 0; length < whole.size(); ++length)
    EXPECT_FALSE(parse_config(whole.substr(0, length), "x"));
  const base::Json json = *base::parse_json(kLlama, "x");
  for (const auto& [key, ignored] : json.items()) {
    for (const char* value : {"null", "[]", "{}", "-1", "1e999", "1e300", "\"\"", "true", "99999999999999999999"}) {
      base::Json changed = json;
      changed[key] = "PLACE";
      std::string text = base::to_line(changed);
      text.replace(text.find("\"PLACE\""), 7, value);
      EXPECT_NO_THROW((void)parse_config(text, "x")) << text;
    }
  }
  EXPECT_FALSE(parse_config("{\"model_type\": 1e999}", "x"));
}

// ---- what is not understood ----------------------------------------------------------------------------------------

TEST(ParseConfig, UnknownKeysAreNamed) {
  EXPECT_EQ(caveats_of(with(kLlama, "warp_factor", 9)),
            "warp_factor: not understood: all numbers leave it out and are "
            "bounds only\n");
  EXPECT_EQ(caveats_of(with(kLlama, "warp_factor", 0)),
            "");  // off, whatever it is
  EXPECT_EQ(caveats_of(with(kLlama, "warp_factor", false)), "");
  for (const char* harmless : {"rms_norm_eps", "use_cache", "bos_token_id", "hidden_act", "transformers_version",
                               "_name_or_path", "attention_dropout", "pretraining_tp", "rope_theta"}) {
    EXPECT_EQ(caveats_of(with(kLlama, harmless, 1)), "") << harmless;
  }
}

TEST(ParseConfig, KnownFeaturesSayWhichWayTheBoundGoes) {
  EXPECT_EQ(caveats_of(with(kLlama, "num_experts", 8)),
            "num_experts: experts are not expected here: parameters and bytes "
            "are lower bounds\n");
  EXPECT_EQ(caveats_of(with(kLlama, "sliding_window", 4096)),
            "sliding_window: a window is not expected here: attention FLOPs "
            "and KV bytes are upper bounds\n");
  base::Json types = base::Json::array();
  for (int i = 0; i < 16; ++i) types.push_back(i == 3 ? "linear_attention" : "full_attention");
  EXPECT_EQ(caveats_of(with(kLlama, "layer_types", types)),
            "layer_types: \"linear_attention\" is not understood and counted "
            "as full attention: its FLOPs and KV bytes "
            "are upper bounds, parameters are rough\n");
}

TEST(ParseConfig, ThousandsOfUnknownKeysAreCounted) {
  base::Json json = *base::parse_json(kLlama, "x");
  for (int i = 0; i < 5000; ++i) json["strange_" + std::to_string(i)] = 1;
  const Config config = config_of(base::to_line(json));
  ASSERT_EQ(config.caveats.size(), 21u);
  EXPECT_EQ(config.caveats.back().meaning, "4980 more keys that are not understood");
}

TEST(ParseConfig, AnUnknownArchitectureWithTheUsualKeysIsALlamaLikeDecoder) {
  const std::string text = with(kLlama, "model_type", "zephyr9");
  EXPECT_EQ(caveats_of(text),
            "model_type: \"zephyr9\" is not known: analysed as a Llama-like "
            "decoder, limited to the keys that such "
            "decoders have; all numbers are estimates\n");
  EXPECT_EQ(parameters(Graph(config_of(text))), 1'235'814'400);
  // Experts are among the usual keys: 3·2048·1000·4 more for each of the 16 layers, less the MLP, with a router of 4
  // rows.
  std::string sparse = with(with(text, "num_experts", 4), "num_experts_per_tok", 2);
  sparse = with(sparse, "moe_intermediate_size", 1000);
  EXPECT_EQ(parameters(Graph(config_of(sparse))),
            1'235'814'400 + 16 * (3 * 2048 * 1000 * 4 + 2048 * 4 - 3 * 2048 * 8192));
}

TEST(ParseConfig, AnUnknownArchitectureWithoutThemSaysWhatIsMissing) {
  const Error error =
      error_of(R"({"model_type": "mamba", "hidden_size": 768, "num_hidden_layers": 24, "vocab_size": 5})");
  EXPECT_EQ(error.code, ErrorCode::kUnsupported);
  EXPECT_EQ(error.message,
            "config.json: model_type: \"mamba\" is not known and "
            "num_attention_heads is missing: shape analysis limited "
            "to decoder-only transformers");
  EXPECT_THAT(error.hint, HasSubstr("known families: gpt2, llama, qwen2"));
  EXPECT_THAT(error.hint, ::testing::Not(HasSubstr("generic")));
  const std::string both = with(with(kLlama, "model_type", "t6"), "is_encoder_decoder", true);
  EXPECT_EQ(error_of(both).message,
            "config.json: model_type: \"t6\" is not known and it has an "
            "encoder: shape analysis limited to decoder-only "
            "transformers");
}

TEST(ParseConfig, CodeIsNeverRun) {
  const std::string text =
      with(kLlama, "auto_map", base::Json{{"AutoModelForCausalLM", "modeling_evil.EvilForCausalLM"}});
  EXPECT_EQ(notes_of(text), "auto_map: names code, which is never executed or fetched\n");
  EXPECT_EQ(caveats_of(text), "");
}

TEST(ParseConfig, LayersThatPredictFurtherTokensAreNotCounted) {
  EXPECT_EQ(notes_of(with(kLlama, "num_nextn_predict_layers", 1)),
            "num_nextn_predict_layers: 1 layer for predicting further tokens "
            "is no part of a pass and not counted\n");
}

// ---- types ---------------------------------------------------------------------------------------------------------

TEST(ParseConfig, WhatAQuantisedModelLeavesPlainIsNotFloat32) {
  // The file of GPT-OSS names no type.
  const std::string text = with(with(kLlama, "torch_dtype", nullptr), "quantization_config", {{"quant_method", "fp8"}});
  EXPECT_EQ(config_of(text).weight.type, "bfloat16");
  EXPECT_EQ(caveats_of(text), "dtype: not given: what is not quantised is counted as bfloat16\n");
}

TEST(ParseConfig, TheCacheMayHaveATypeOfItsOwn) {
  EXPECT_EQ(config_of(with(kLlama, "kv_cache_dtype", "fp8_e4m3")).kv, (Number{"float8_e4m3", 1}));
  EXPECT_EQ(config_of(with(kLlama, "kv_cache_dtype", "auto")).kv, (Number{"bfloat16", 2}));
  EXPECT_EQ(caveats_of(with(kLlama, "kv_cache_dtype", "turbo3")),
            "kv_cache_dtype: \"turbo3\" is not understood: the cache is "
            "counted as bfloat16\n");
}

TEST(SetTypes, AFullTypeIsThatOfEverything) {
  Config config = config_of(kLlama);
  ASSERT_TRUE(set_types(config, {.weights = "fp16"}));
  EXPECT_EQ(config.weight.type, "float16");
  EXPECT_EQ(config.kv.type, "float16");
  EXPECT_EQ(config.activation.type, "float16");
  EXPECT_EQ(config.arithmetic, "float16");
}

TEST(SetTypes, ASmallTypeIsThatOfMatrices) {
  Config config = config_of(kLlama);
  ASSERT_TRUE(set_types(config, {.weights = "int4", .kv = "fp8"}));
  EXPECT_EQ(config.weight.type, "bfloat16");
  EXPECT_EQ(config.kv.type, "float8_e4m3");
  EXPECT_EQ(config.activation.type, "bfloat16");
  ASSERT_TRUE(config.quantization);
  EXPECT_EQ(config.quantization->weight, (Number{"int4", 0.5}));
  EXPECT_EQ(config.quantization->arithmetic, "");
  // A model that says it is in float8 and one that is asked to be int8 keep their tables in 16 bits.
  Config eight = config_of(with(kLlama, "torch_dtype", "float8_e4m3fn"));
  EXPECT_EQ(eight.activation.type, "bfloat16");
  ASSERT_TRUE(set_types(eight, {.weights = "fp8", .activations = "float16"}));
  EXPECT_EQ(eight.quantization->arithmetic, "float8_e4m3");
  EXPECT_EQ(eight.activation.type, "float16");
  EXPECT_EQ(eight.kv.type, "bfloat16");  // has an option of its own
}

TEST(SetTypes, UnknownOnesAreRefused) {
  Config config = config_of(kLlama);
  const Result<void> result = set_types(config, {.weights = "int3.5"});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kUsage);
  EXPECT_EQ(result.error().message, "--dtype: 'int3.5' is not a type of numbers");
}

TEST(NumberOf, UsualSpellings) {
  EXPECT_EQ(number_of("torch.bfloat16"), (Number{"bfloat16", 2}));
  EXPECT_EQ(number_of("BF16"), (Number{"bfloat16", 2}));
  EXPECT_EQ(number_of("half"), (Number{"float16", 2}));
  EXPECT_EQ(number_of("fp8"), (Number{"float8_e4m3", 1}));
  EXPECT_EQ(number_of("Q4_K"), (Number{"q4_k", 0.5625}));
  EXPECT_EQ(number_of("nvfp4"), (Number{"nvfp4", 0.5625}));
  EXPECT_EQ(number_of("mxfp4"), (Number{"mxfp4", 0.53125}));
  EXPECT_FALSE(number_of(""));
  EXPECT_FALSE(number_of("float33"));
  EXPECT_FALSE(number_of(std::string(1 << 20, 'f')));
}

}  // namespace
}  // namespace llmprof::model
