#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "model/model.h"

namespace llmprof::model {
namespace {

using ::testing::HasSubstr;

constexpr const char* kLlama = R"({"model_type": "llama", "hidden_size": 2048, "num_hidden_layers": 16,
  "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64, "intermediate_size": 8192,
  "vocab_size": 128256, "tie_word_embeddings": true, "torch_dtype": "bfloat16", "max_position_embeddings": 131072,
  "rope_scaling": {"factor": 32.0}, "attention_bias": false})";
constexpr const char* kGpt2 = R"({"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "n_inner": null,
  "n_positions": 1024, "vocab_size": 50257})";

// kLlama or kGpt2 with one key replaced (a null value removes it).
std::string with(const char* text, const std::string& key, const base::Json& value) {
  base::Json json = *base::parse_json(text, "base");
  if (value.is_null()) {
    json.erase(key);
  } else {
    json[key] = value;
  }
  return base::to_line(json);
}

Error error_of(const std::string& text) {
  const Result<Config> config = parse_config(text, "config.json");
  EXPECT_FALSE(config) << text;
  return config ? Error{} : config.error();
}

TEST(ParseConfig, Llama) {
  const Result<Config> config = parse_config(kLlama, "config.json");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(parameters(Graph(*config)), 1'235'814'400);
  EXPECT_EQ(config->arithmetic, "bfloat16");
  EXPECT_EQ(config->weight.bytes, 2);
  EXPECT_EQ(config->kv.bytes, 2);
  EXPECT_EQ(config->activation.bytes, 2);
  EXPECT_TRUE(config->tied_embeddings);
}

TEST(ParseConfig, Gpt2) {
  const Result<Config> config = parse_config(kGpt2, "config.json");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(parameters(Graph(*config)), 124'439'808);
  EXPECT_EQ(config->kinds[0].mlp.width, 4 * 768);
  EXPECT_EQ(config->arithmetic, "float32");
  EXPECT_EQ(config->weight.bytes, 4);
  EXPECT_EQ(parse_config(with(kGpt2, "n_inner", 1000), "x")->kinds[0].mlp.width, 1000);
}

TEST(ParseConfig, Defaults) {
  EXPECT_EQ(parse_config(with(kLlama, "num_key_value_heads", nullptr), "x")->kinds[0].attention.kv_heads, 32);
  EXPECT_EQ(parse_config(with(kLlama, "head_dim", nullptr), "x")->kinds[0].attention.qk_dim, 64);  // 2048 / 32
  EXPECT_EQ(parse_config(with(kLlama, "head_dim", 128), "x")->kinds[0].attention.qk_dim, 128);
  EXPECT_FALSE(parse_config(with(kLlama, "tie_word_embeddings", nullptr), "x")->tied_embeddings);
  EXPECT_EQ(parse_config(with(kLlama, "torch_dtype", nullptr), "x")->arithmetic, "float32");
  EXPECT_EQ(parse_config(with(kLlama, "dtype", "float16"), "x")->arithmetic, "float16");  // the newer key wins
}

TEST(ParseConfig, ErrorsNameTheKeyAndTheValue) {
  EXPECT_EQ(error_of(with(kLlama, "hidden_size", nullptr)).message, "config.json: hidden_size is missing");
  EXPECT_EQ(error_of(with(kLlama, "num_attention_heads", 0)).message,
            "config.json: num_attention_heads: 0 is not a whole number from 1 to 2147483648");
  EXPECT_THAT(error_of(with(kLlama, "vocab_size", -5)).message, HasSubstr("vocab_size: -5 is not"));
  EXPECT_THAT(error_of(with(kLlama, "vocab_size", (std::int64_t{1} << 31) + 1)).message,
              HasSubstr("vocab_size: 2147483649 is not"));
  EXPECT_THAT(error_of(with(kLlama, "vocab_size", UINT64_MAX)).message,
              HasSubstr("vocab_size: 18446744073709551615 is not"));
  EXPECT_THAT(error_of(with(kLlama, "hidden_size", "2048")).message, HasSubstr("hidden_size: \"2048\" is not"));
  EXPECT_THAT(error_of(with(kLlama, "hidden_size", 2048.5)).message, HasSubstr("hidden_size: 2048.5 is not"));
  EXPECT_THAT(error_of(with(kGpt2, "n_layer", 1'000'000)).message,
              HasSubstr("n_layer: 1000000 is not a whole number from 1 to 100000"));
  EXPECT_THAT(error_of(with(kLlama, "tie_word_embeddings", "yes")).message, HasSubstr("tie_word_embeddings: \"yes\""));
  EXPECT_EQ(error_of(with(kLlama, "num_key_value_heads", 5)).message,
            "config.json: num_attention_heads: 32 is not divisible by num_key_value_heads = 5");
  EXPECT_THAT(error_of(with(kGpt2, "n_head", 7)).message, HasSubstr("n_embd: 768 is not divisible by n_head = 7"));
  EXPECT_EQ(error_of(with(kLlama, "hidden_size", nullptr)).code, ErrorCode::kCorruptInput);
}

TEST(ParseConfig, SizesThatMultiplyToNonsenseAreRefused) {
  std::string text = with(kLlama, "hidden_size", std::int64_t{1} << 31);
  text = with(text.c_str(), "intermediate_size", std::int64_t{1} << 31);
  EXPECT_THAT(error_of(text).message, HasSubstr("parameters"));
}

TEST(ParseConfig, UnsupportedIsSaidSo) {
  const Error family = error_of(with(kLlama, "model_type", "mamba"));
  EXPECT_EQ(family.code, ErrorCode::kUnsupported);
  EXPECT_EQ(family.message, "config.json: model_type: \"mamba\" is not supported");
  EXPECT_EQ(family.hint, "known families: gpt2, llama");
  EXPECT_EQ(error_of(with(kLlama, "torch_dtype", "int3")).code, ErrorCode::kUnsupported);
  EXPECT_THAT(error_of(with(kLlama, "quantization_config", base::Json{{"bits", 4}})).message,
              HasSubstr("quantization_config"));
}

TEST(ParseConfig, NotAConfig) {
  EXPECT_THAT(error_of("").message, HasSubstr("config.json:byte"));
  EXPECT_EQ(error_of("[1]").message, "config.json: not a JSON object");
  EXPECT_EQ(error_of("{}").message, "config.json: model_type is missing");
  EXPECT_THAT(error_of(R"({"model_type": 7})").message, HasSubstr("model_type: 7 is not a string"));
  EXPECT_THAT(error_of("{\"model_type\": \"a\\u0000\\u001b[31m\"}").message, HasSubstr("\\x1b"));
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

}  // namespace
}  // namespace llmprof::model
