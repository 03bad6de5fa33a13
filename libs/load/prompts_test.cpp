#include "load/prompts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace llmprof::load {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

const std::string kFolder = std::string(LLMPROF_SOURCE_DIR) + "/libs/load/testing/";

Tokenizer tokenizer(const std::string& name) {
  auto read = Tokenizer::read(kFolder + name + ".json");
  EXPECT_TRUE(read) << (read ? "" : read.error().message);
  return read ? std::move(*read) : Tokenizer();
}

serving::Workload workload(std::int32_t prompt, std::int64_t prefixes = 0, std::int32_t prefix_tokens = 0) {
  serving::WorkloadSpec spec;
  spec.requests = 40;
  spec.lengths = serving::Lengths::kUniform;
  spec.prompt = 1;
  spec.prompt_most = prompt;
  spec.prefixes = prefixes;
  spec.prefix_tokens = prefix_tokens;
  return *serving::make_workload(spec);
}

std::string error_of(std::string_view text, const PromptOptions& options = {}) {
  const auto prompts = parse_prompts(text, "d.json", options);
  return prompts ? "" : prompts.error().message;
}
Prompts parsed(std::string_view text, const PromptOptions& options = {}) {
  auto prompts = parse_prompts(text, "d.json", options);
  EXPECT_TRUE(prompts) << (prompts ? "" : prompts.error().message);
  return prompts ? std::move(*prompts) : Prompts();
}

TEST(Prompts, RandomTextHasExactlyTheTokensAskedFor) {
  for (const char* name : {"gpt2", "llama3", "qwen2", "llama2", "mistral"}) {
    const Tokenizer own = tokenizer(name);
    const serving::Workload asked = workload(300, 2, 32);
    const auto prompts = synthetic_prompts(asked, &own, 3);
    ASSERT_TRUE(prompts) << name << ": " << prompts.error().message;
    EXPECT_EQ(prompts->description.find("without the 1 that its template adds") != std::string::npos,
              std::string(name) == "llama3");
    for (std::size_t i = 0; i < asked.requests.size(); ++i) {
      const Prompt& prompt = prompts->prompts[i];
      EXPECT_EQ(prompt.tokens, asked.requests[i].prompt_tokens);
      EXPECT_EQ(own.count(prompt.text), prompt.tokens) << name << ": " << prompt.text;
      EXPECT_EQ(prompt.ids, own.encode(prompt.text));
      EXPECT_TRUE(prompt.counted);
      EXPECT_EQ(prompt.arrival_ns, asked.requests[i].arrival_ns);
    }
  }
}

TEST(Prompts, SharedPiecesAreEqualBeginningsAndNothingElseIs) {
  const Tokenizer own = tokenizer("gpt2");
  const serving::Workload asked = workload(200, 3, 48);
  for (const Tokenizer* counts : {&own, static_cast<const Tokenizer*>(nullptr)}) {
    const Prompts prompts = *synthetic_prompts(asked, counts, 3);
    std::size_t same = 0;
    for (std::size_t i = 1; i < prompts.prompts.size(); ++i) {
      const std::string &a = prompts.prompts[0].text, &b = prompts.prompts[i].text;
      const auto common = std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
      const auto words = std::count(a.begin(), a.begin() + common, ' ');
      const bool shares = asked.requests[0].id_begin == asked.requests[i].id_begin;
      EXPECT_EQ(words >= 47, shares) << words;
      EXPECT_TRUE(shares || words < 10) << words;
      same += shares;
    }
    EXPECT_GT(same, 3U);
    EXPECT_LT(same, 39U);
  }
}

TEST(Prompts, WithoutATokenizerTheyArePlannedAndNotCounted) {
  const Prompts prompts = *synthetic_prompts(workload(20), nullptr, 3);
  for (const Prompt& prompt : prompts.prompts) {
    EXPECT_FALSE(prompt.counted);
    EXPECT_THAT(prompt.ids, IsEmpty());
    EXPECT_EQ(std::count(prompt.text.begin(), prompt.text.end(), ' ') + 1, prompt.tokens);
  }
  EXPECT_THAT(prompts.description, HasSubstr("not counted"));
  EXPECT_EQ(synthetic_prompts(workload(20), nullptr, 3)->prompts[7].text, prompts.prompts[7].text) << "by the seed";
  EXPECT_NE(synthetic_prompts(workload(20), nullptr, 4)->prompts[7].text, prompts.prompts[7].text);
  serving::Workload huge;
  huge.requests.resize(20, {.prompt_tokens = 16 << 20});
  EXPECT_FALSE(synthetic_prompts(huge, nullptr, 1));
}

std::string conversation(const std::string& id, int prompt_words, int answer_words, const std::string& more = "") {
  const auto words = [](int count) {
    std::string text = "the";
    for (int i = 1; i < count; ++i) text += " the";
    return text;
  };
  return R"({"id":")" + id + R"(","items":[{"value":"not this"}],"conversations":[{"from":"human","value":")" +
         words(prompt_words) + R"("},{"from":"gpt","value":")" + words(answer_words) + "\"}" + more + "]}";
}

TEST(DataSets, ShareGptByTheRulesOfVllm) {
  const Tokenizer own = tokenizer("llama2");  // "the" is a token with and without a space
  PromptOptions options;
  options.tokenizer = &own;
  const std::string list =
      "[" + conversation("short", 3, 9) + "," + conversation("short answer", 9, 3) + "," +
      conversation("good", 4, 4, R"(,{"from":"human","value":"more"})") + "," + conversation("longest", 1024, 1024) +
      "," + conversation("long", 1025, 4) + "," + conversation("long together", 1000, 1049) +
      R"(,{"id":"one","conversations":[{"from":"human","value":"the the the the the"}]},{"id":"none"}])";
  const Prompts prompts = parsed(list, options);
  std::vector<std::string> ids;
  for (const Prompt& prompt : prompts.prompts) ids.push_back(prompt.id);
  EXPECT_THAT(ids, testing::UnorderedElementsAre("good", "longest"));
  EXPECT_THAT(prompts.description, HasSubstr("of 8 looked at, 2 left out with fewer than two turns, 2 too short"));
  EXPECT_THAT(prompts.description, HasSubstr("2 too long"));
  for (const Prompt& prompt : prompts.prompts) EXPECT_EQ(prompt.output_tokens, prompt.id == "good" ? 4 : 1024);
  options.output_tokens = 10;  // what the answer had does not matter then
  EXPECT_THAT(parsed(list, options).prompts, SizeIs(4));
  options.most = 1;
  EXPECT_THAT(parsed(list, options).prompts, SizeIs(1));
  // One a line as well.
  options = {.tokenizer = &own};
  EXPECT_THAT(parsed(conversation("a", 5, 5) + "\n\n" + conversation("b", 5, 5) + "\n", options).prompts, SizeIs(2));
  EXPECT_THAT(error_of(conversation("a", 5, 5) + "\n{\"conversations\": [\n", options), HasSubstr("line 2"));
  EXPECT_THAT(error_of(list), HasSubstr("counted in tokens"));
  EXPECT_THAT(error_of("[{\"id\": 1}]", options), HasSubstr("no usable conversation"));
  EXPECT_THAT(error_of("[{\"id\": ", options), HasSubstr("d.json:byte"));
  EXPECT_THAT(error_of(std::string(1000, '['), options), HasSubstr("nested"));
}

TEST(DataSets, LinesWithPrompts) {
  const Tokenizer own = tokenizer("gpt2");
  PromptOptions options;
  options.tokenizer = &own;
  const Prompts prompts = parsed(
      "{\"prompt\": \"the first\", \"output_tokens\": 5, \"id\": \"x\"}\r\n\n"
      "{\"prompt\": [1, 2, 3], \"max_tokens\": 6}\n",
      options);
  ASSERT_THAT(prompts.prompts, SizeIs(2));
  EXPECT_EQ(prompts.prompts[0].id, "x");
  EXPECT_EQ(prompts.prompts[0].tokens, own.count("the first"));
  EXPECT_EQ(prompts.prompts[0].output_tokens, 5);
  EXPECT_THAT(prompts.prompts[1].ids, ElementsAre(1, 2, 3));
  EXPECT_EQ(prompts.prompts[1].output_tokens, 6);
  const Prompts uncounted = parsed("{\"prompt\": \"x\", \"output_tokens\": 5}");
  EXPECT_FALSE(uncounted.prompts[0].counted);
  EXPECT_EQ(uncounted.prompts[0].tokens, 0);
}

TEST(DataSets, LinesWithChats) {
  const Prompts prompts = parsed(
      R"({"custom_id":"r1","body":{"messages":[{"role":"system","content":"be brief"},{"role":"user","content":[{"type":"text","text":"hello"}]}],"max_completion_tokens":7}})");
  ASSERT_THAT(prompts.prompts, SizeIs(1));
  EXPECT_EQ(prompts.prompts[0].text, "be brief\nhello");
  EXPECT_EQ(prompts.prompts[0].id, "r1");
  EXPECT_EQ(prompts.prompts[0].output_tokens, 7);
  EXPECT_THAT(prompts.prompts[0].messages, HasSubstr(R"([{"role":"system","content":"be brief"})"));
  EXPECT_THAT(error_of(R"({"messages":[{"role":"user","content":[{"type":"image_url"}]}],"max_tokens":1})"),
              HasSubstr("images"));
}

TEST(DataSets, TracesBecomeRandomText) {
  const char* trace =
      "{\"timestamp\": 0, \"input_length\": 1100, \"output_length\": 5, \"hash_ids\": [1, 2, 3]}\n"
      "{\"timestamp\": 250, \"input_length\": 1100, \"output_length\": 6, \"hash_ids\": [1, 2, 4]}\n";
  const Prompts prompts = parsed(trace);
  ASSERT_THAT(prompts.prompts, SizeIs(2));
  EXPECT_EQ(prompts.prompts[1].arrival_ns, 250e6);
  EXPECT_EQ(prompts.prompts[1].tokens, 1100);
  const std::string &a = prompts.prompts[0].text, &b = prompts.prompts[1].text;
  const auto common = std::mismatch(a.begin(), a.end(), b.begin()).first;
  EXPECT_NEAR(static_cast<double>(std::count(a.begin(), common, ' ')), 1023, 3);
  EXPECT_THAT(parsed(trace, {.most = 1}).prompts, SizeIs(1));
}

TEST(DataSets, ErrorsNameTheLine) {
  const std::string good = "{\"prompt\": \"x\", \"output_tokens\": 5}\n";
  EXPECT_THAT(error_of(good + "{\"prompt\": \"x\"}"), HasSubstr("d.json line 2: no \"output_tokens\""));
  EXPECT_THAT(error_of(good + "\n{\"prompt\": "), HasSubstr("d.json line 3"));
  EXPECT_THAT(error_of(good + "[]"), HasSubstr("line 2: not a JSON object"));
  EXPECT_THAT(error_of("{\"text\": \"x\", \"output_tokens\": 5}"), HasSubstr("no \"prompt\""));
  EXPECT_THAT(error_of("{\"prompt\": \"x\", \"output_tokens\": 0}"), HasSubstr("1 to"));
  EXPECT_THAT(error_of("{\"prompt\": \"x\", \"output_tokens\": 1e99}"), HasSubstr("1 to"));
  EXPECT_THAT(error_of("{\"prompt\": [1, -1], \"output_tokens\": 1}"), HasSubstr("no token id"));
  EXPECT_THAT(error_of("{\"prompt\": \"\", \"output_tokens\": 1}"), HasSubstr("empty"));
  EXPECT_THAT(error_of("{\"messages\": [], \"max_tokens\": 1}"), HasSubstr("not a list of messages"));
  EXPECT_FALSE(read_prompts("/dev/null", {}));
}

}  // namespace
}  // namespace llmprof::load
