#include "load/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/json.h"
#include "load/prompts.h"
#include "load/unicode.h"

namespace llmprof::load {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Made by tests/ecosystem/programs/make_tokenizers.py with the package `tokenizers`: what it says is expected.
const std::string kFolder = std::string(LLMPROF_SOURCE_DIR) + "/libs/load/testing/";

std::string model(const std::string& fields) {
  return R"({"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2,"<unk>":3," ":4},"merges":["a b"])" + fields + "}";
}
Tokenizer parsed(const std::string& json) {
  auto tokenizer = Tokenizer::parse(json, "t");
  EXPECT_TRUE(tokenizer) << (tokenizer ? "" : tokenizer.error().message);
  return tokenizer ? std::move(*tokenizer) : Tokenizer();
}
std::string refusal(const std::string& json) {
  const auto tokenizer = Tokenizer::parse(json, "t.json");
  return tokenizer ? "" : tokenizer.error().message;
}

TEST(Tokenizer, EncodesAsThePackageTokenizersDoes) {
  const auto expected = base::read_json(kFolder + "expected.json");
  const auto lines = base::read_file(kFolder + "texts.jsonl", 1 << 20);
  ASSERT_TRUE(expected && lines);
  PromptOptions options;
  options.output_tokens = 1;
  std::size_t compared = 0;
  for (const auto& [name, ids] : expected->items()) {
    const auto tokenizer = Tokenizer::read(kFolder + name + ".json");
    ASSERT_TRUE(tokenizer) << tokenizer.error().message;
    options.tokenizer = &*tokenizer;
    const auto texts = parse_prompts(*lines, "texts.jsonl", options);
    ASSERT_TRUE(texts) << texts.error().message;
    ASSERT_EQ(texts->prompts.size(), ids.size());
    for (std::size_t i = 0; i < ids.size(); ++i, ++compared)
      EXPECT_EQ(texts->prompts[i].ids, ids[i].get<std::vector<std::int32_t>>())
          << name << ": " << texts->prompts[i].text;
  }
  EXPECT_EQ(compared, 300U);
}

TEST(Tokenizer, SpecialTokensOfTheTemplateAreCountedApart) {
  EXPECT_EQ(Tokenizer::read(kFolder + "llama3.json")->special_tokens(), 1);
  EXPECT_EQ(Tokenizer::read(kFolder + "gpt2.json")->special_tokens(), 0);
}

TEST(Tokenizer, MergesUnknownTokensAndBytesThatAreNoText) {
  const Tokenizer plain = parsed(model("}"));
  EXPECT_THAT(plain.encode("abba"), ElementsAre(2, 1, 0));
  EXPECT_THAT(plain.encode("azb"), ElementsAre(2)) << "what is unknown is left out, and its neighbours merge";
  EXPECT_THAT(parsed(model(R"(,"unk_token":"<unk>"})")).encode("zza"), ElementsAre(3, 3, 0));
  EXPECT_THAT(parsed(model(R"(,"unk_token":"<unk>","fuse_unk":true})"))
                  .encode("zz\xFF"
                          "a"),
              ElementsAre(3, 0));
  EXPECT_THAT(plain.encode(""), ElementsAre());
}

TEST(Tokenizer, WhatCannotBeFollowedExactlyIsRefused) {
  EXPECT_THAT(refusal(model(R"(,"dropout":0.1})")), HasSubstr("dropout"));
  EXPECT_THAT(refusal(model(R"(,"end_of_word_suffix":"</w>"})")), HasSubstr("end_of_word_suffix"));
  EXPECT_THAT(refusal(R"({"model":{"type":"Unigram","vocab":[]}})"), HasSubstr("\"Unigram\""));
  EXPECT_THAT(refusal(model(R"(},"normalizer":{"type":"NFKC"})")), HasSubstr("normalizer \"NFKC\""));
  EXPECT_THAT(refusal(model(R"(},"pre_tokenizer":{"type":"BertPreTokenizer"})")), HasSubstr("BertPreTokenizer"));
  EXPECT_THAT(refusal(model(R"(},"added_tokens":[{"id":0,"content":"a","single_word":true}])")),
              HasSubstr("single_word"));
  EXPECT_THAT(refusal(model(R"(},"added_tokens":[{"id":9,"content":"a"}])")), HasSubstr("in the vocabulary it has 0"));
  EXPECT_THAT(refusal(model(R"(},"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"ByteLevel"},
    {"type":"Metaspace","replacement":"_","prepend_scheme":"first"}]})")),
              HasSubstr("first piece"));
}

TEST(Tokenizer, DamagedFilesAreErrors) {
  EXPECT_THAT(refusal("{\"model\":"), HasSubstr("t.json:byte"));
  EXPECT_THAT(refusal("[]"), HasSubstr("not a tokenizer.json"));
  EXPECT_THAT(refusal("{}"), HasSubstr("no \"model\""));
  EXPECT_THAT(refusal(R"({"model":{"type":"BPE","vocab":{"a":-1},"merges":[]}})"), HasSubstr("id of token a"));
  EXPECT_THAT(refusal(R"({"model":{"type":"BPE","vocab":{"a":1},"merges":["a a"]}})"), HasSubstr("merge 1"));
  EXPECT_THAT(refusal(R"({"model":{"type":"BPE","vocab":{"a":1},"merges":["a"]}})"), HasSubstr("not a pair"));
  EXPECT_THAT(refusal(std::string(500, '[')), HasSubstr("t.json"));
  EXPECT_FALSE(Tokenizer::read("/nowhere/tokenizer.json"));
}

std::vector<std::string> split(const char* pattern, std::string_view text) {
  const auto parsed = SplitPattern::parse(pattern);
  EXPECT_TRUE(parsed) << pattern;
  const std::u32string codes = decode_utf8(text);
  std::vector<std::string> found;
  for (const auto& match : parsed ? parsed->matches(codes) : std::vector<SplitPattern::Match>())
    found.push_back(encode_utf8(std::u32string_view(codes).substr(match.begin, match.end - match.begin)));
  return found;
}

TEST(SplitPattern, MeansWhatOnigurumaMeans) {
  EXPECT_THAT(split("\\s+(?!\\S)|\\s+|\\S+", "a   b "), ElementsAre("a", "  ", " ", "b", " "));
  EXPECT_THAT(split("\\p{N}{1,3}", "12345a6"), ElementsAre("123", "45", "6"));
  EXPECT_THAT(split("\\p{N}{2}", "12345"), ElementsAre("12", "34"));
  EXPECT_THAT(split("(?i:'s|'re)?x|[^x]", "'Rex'\xC5\xBFx"), ElementsAre("'Rex", "'\xC5\xBFx"));
  EXPECT_THAT(split("a++a|a", "aaa"), ElementsAre("a", "a", "a")) << "possessive: nothing is given back";
  EXPECT_THAT(split("a+a", "aaa"), ElementsAre("aaa"));
  EXPECT_THAT(split("x(?=y)|y", "xxy"), ElementsAre("x", "y"));
  EXPECT_THAT(split("[^\\S\\n]+", "a \t\n b"), ElementsAre(" \t", " "));
  EXPECT_THAT(split("[a-c\\-\\]]+", "ab-]d"), ElementsAre("ab-]"));
}

TEST(SplitPattern, RefusesWhatItDoesNotKnow) {
  for (const char* pattern : {"",
                              "a*",
                              "(a",
                              "a)",
                              "[a",
                              "[]",
                              "\\w+",
                              "\\b",
                              "^a",
                              "a$",
                              ".",
                              "a+?",
                              "(ab)+",
                              "(?<=a)b",
                              "(?!ab)c",
                              "\\p{Han}",
                              "\\p{L",
                              "[[:alpha:]]",
                              "[a&&b]",
                              "a{,3}",
                              "a{3,1}",
                              "(?i:st)",
                              "(?i:[a-z])",
                              "\\1",
                              "a|",
                              "\\",
                              "((((((((((a))))))))))",
                              "a*b*c*d*e*f*g"}) {
    const auto parsed = SplitPattern::parse(pattern);
    EXPECT_FALSE(parsed) << pattern;
    EXPECT_TRUE(parsed || !parsed.error().hint.empty());
  }
}

TEST(Unicode, ComposesCanonically) {
  EXPECT_EQ(composed("e\u0301"), "\u00E9");
  EXPECT_EQ(composed("q\u0307\u0323"), "q\u0323\u0307") << "marks are put in order";
  EXPECT_EQ(composed("\u1100\u1161\u11A8"), "\uAC01");
  EXPECT_EQ(composed("\u212B"), "\u00C5");
  EXPECT_EQ(composed("\u0915\u093C"), "\u0915\u093C") << "excluded from composition";
  EXPECT_EQ(composed("\u0301a"), "\u0301a");
}

TEST(Unicode, WhatIsNoCharacterIsReplaced) {
  EXPECT_EQ(encode_utf8(decode_utf8("a\xFFz")), "a\uFFFDz");
  EXPECT_EQ(decode_utf8(std::string_view("\0", 1)), std::u32string(1, U'\0'));
  EXPECT_EQ(encode_utf8(decode_utf8("\U00020000")), "\U00020000");
}

}  // namespace
}  // namespace llmprof::load
