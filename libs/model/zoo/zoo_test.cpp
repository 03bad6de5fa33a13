#include "model/zoo/zoo.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/model.h"

namespace llmprof::model {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::SizeIs;

std::vector<std::string> names() {
  std::vector<std::string> names;
  for (const ZooEntry& entry : zoo()) names.push_back(entry.name);
  return names;
}

class EveryModel : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryModel, IsUnderstoodAndHasItsParameters) {
  const ZooEntry& entry = *find_in_zoo(GetParam());
  const Result<Config> config = config_of(entry);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->name, entry.name);
  for (const Caveat& caveat : config->caveats) ADD_FAILURE() << caveat.field << ": " << caveat.meaning;
  EXPECT_EQ(parameters(Graph(*config)), entry.parameters) << entry.parameters_source;
}

INSTANTIATE_TEST_SUITE_P(Zoo, EveryModel, ::testing::ValuesIn(names()), [](const auto& test) {
  std::string name = test.param;
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
});

TEST(Zoo, SaysWhereItsNumbersComeFrom) {
  for (const ZooEntry& entry : zoo()) {
    EXPECT_FALSE(entry.source.empty()) << entry.name;
    EXPECT_FALSE(entry.parameters_source.empty()) << entry.name;
  }
}

TEST(Zoo, HasThePromisedModels) {
  for (const char* name :
       {"gpt2",          "gpt2-medium",     "gpt2-large",      "gpt2-xl",         "llama-2-7b",       "llama-2-13b",
        "llama-2-70b",   "llama-3-8b",      "llama-3-70b",     "llama-3.1-8b",    "llama-3.1-70b",    "llama-3.1-405b",
        "llama-3.2-1b",  "llama-3.2-3b",    "llama-3.3-70b",   "qwen2-0.5b",      "qwen2-1.5b",       "qwen2-7b",
        "qwen2-72b",     "qwen2.5-0.5b",    "qwen2.5-72b",     "qwen2-57b-a14b",  "qwen3-0.6b",       "qwen3-32b",
        "qwen3-30b-a3b", "qwen3-235b-a22b", "mistral-7b-v0.1", "mistral-7b-v0.3", "mistral-nemo-12b", "mixtral-8x7b",
        "mixtral-8x22b", "gemma-2-2b",      "gemma-2-27b",     "gemma-3-1b",      "gemma-3-27b",      "phi-3-mini",
        "phi-3-medium",  "phi-4",           "phi-4-mini",      "deepseek-v2",     "deepseek-v2-lite", "deepseek-v3",
        "deepseek-r1",   "gpt-oss-20b",     "gpt-oss-120b"}) {
    EXPECT_NE(find_in_zoo(name), nullptr) << name;
  }
}

TEST(Zoo, ParameterCountsThatPeopleKnow) {
  EXPECT_EQ(find_in_zoo("llama-3.2-1b")->parameters, 1'235'814'400);
  EXPECT_EQ(find_in_zoo("mixtral-8x7b")->parameters, 46'702'792'704);
  EXPECT_EQ(find_in_zoo("llama-2-7b")->parameters, 6'738'415'616);
}

TEST(Zoo, ANameHasManySpellings) {
  for (const char* name : {"llama-3.2-1b", "llama3.2-1b", "LLaMA-3.2-1B", "llama_3.2_1b", "Llama 3.2 1B",
                           "meta-llama/Llama-3.2-1B", "Llama-3.2-1B-Instruct", "META-LLAMA/llama-3.2-1b-instruct"}) {
    const ZooEntry* entry = find_in_zoo(name);
    ASSERT_NE(entry, nullptr) << name;
    EXPECT_EQ(entry->name, "llama-3.2-1b") << name;
  }
}

TEST(Zoo, NoNameMeansTwoModels) {
  for (const ZooEntry& entry : zoo()) {
    EXPECT_EQ(find_in_zoo(entry.name), &entry) << entry.name;
    for (const std::string& alias : entry.aliases) EXPECT_EQ(find_in_zoo(alias), &entry) << alias;
  }
}

TEST(Zoo, OtherNamesAreUnknown) {
  for (const char* name :
       {"", "/", "-", "llama", "llama-3.2-1c", "someone/Llama-3.2-1B", "./llama-3.2-1b", "llama-3.2-1b/config.json"}) {
    EXPECT_EQ(find_in_zoo(name), nullptr) << name;
  }
  EXPECT_EQ(find_in_zoo(std::string(1 << 20, 'a')), nullptr);
}

TEST(Match, LooselyWrittenNames) {
  const auto only = [](const char* typed) {
    const std::vector<const ZooEntry*> found = match_in_zoo(typed);
    return found.size() == 1 ? found.front()->name : fmt::format("{} models", found.size());
  };
  EXPECT_EQ(only("llama 3.2 1b"), "llama-3.2-1b");
  EXPECT_EQ(only("llama-3.2-1B-Instruct"), "llama-3.2-1b");
  EXPECT_EQ(only("Llama3.2 1B chat"), "llama-3.2-1b");
  EXPECT_EQ(only("3.2-1b"), "llama-3.2-1b");
  EXPECT_EQ(only("qwen3-8b-base"), "qwen3-8b");
  EXPECT_EQ(only("llama-3.2-1b-my-finetune"), "0 models");
  EXPECT_EQ(only(""), "0 models");
  EXPECT_GT(match_in_zoo("llama").size(), 5u);
}

TEST(Suggest, NearNamesFirst) {
  EXPECT_EQ(suggest("lama-3.2-1b").front(), "llama-3.2-1b");
  EXPECT_THAT(suggest("qwen3-7b"), IsSupersetOf({"qwen2-7b", "qwen3-8b"}));
  EXPECT_EQ(suggest("unsloth/Llama-3.2-1B").front(), "llama-3.2-1b");
  EXPECT_THAT(suggest("gpt2-x"), Contains("gpt2-xl"));
  EXPECT_THAT(suggest("mixtral"), ElementsAre("mixtral-8x7b", "mixtral-8x22b", "mixtral-8x22b-instruct"));
}

TEST(Suggest, FewOrNone) {
  EXPECT_THAT(suggest("llama"), SizeIs(5));  // of more that begin so
  EXPECT_THAT(suggest("resnet50"), IsEmpty());
  EXPECT_THAT(suggest(""), IsEmpty());
  EXPECT_THAT(suggest(std::string(1 << 20, 'a')), IsEmpty());
}

}  // namespace
}  // namespace llmprof::model
