#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "verb.h"

namespace llmprof::app {
namespace {

constexpr Option kOptions[] = {
    {"--output", "-o", "LLMPROF_TEST_OUTPUT", "NAME", "fallback", "where the run goes."},
    {"--json", "", "", "", "", "machine-readable output."},
};
constexpr Positional kOne[] = {{"RUN"}};
Result<int> nothing(const Arguments&) { return 0; }
constexpr Verb kVerb{"test", "a verb for this test", kOptions, kOne, false, nothing};
constexpr Verb kCommandVerb{"run", "takes a command", kOptions, {}, true, nothing};

TEST(CommandLine, FlagThenVariableThenDefault) {
  ::unsetenv("LLMPROF_TEST_OUTPUT");
  EXPECT_EQ(parse_arguments(kVerb, {"x"})->get("--output"), "fallback");
  EXPECT_FALSE(parse_arguments(kVerb, {"x"})->given("--output"));
  ::setenv("LLMPROF_TEST_OUTPUT", "from-variable", 1);
  EXPECT_EQ(parse_arguments(kVerb, {"x"})->get("--output"), "from-variable");
  EXPECT_EQ(parse_arguments(kVerb, {"x", "-o", "typed"})->get("--output"), "typed");
  EXPECT_EQ(parse_arguments(kVerb, {"--output=typed", "x"})->get("--output"), "typed");
  ::unsetenv("LLMPROF_TEST_OUTPUT");
}

TEST(CommandLine, SwitchesAndPositionals) {
  const Result<Arguments> arguments = parse_arguments(kVerb, {"--json", "x"});
  ASSERT_TRUE(arguments);
  EXPECT_TRUE(arguments->on("--json"));
  EXPECT_EQ(arguments->positionals, std::vector<std::string>{"x"});
  EXPECT_FALSE(parse_arguments(kVerb, {"x"})->on("--json"));
}

TEST(CommandLine, WhatFollowsTheDashesIsTheCommandsOwn) {
  const Result<Arguments> arguments = parse_arguments(kCommandVerb, {"-o", "a", "--", "ls", "--json", "-o", "b"});
  ASSERT_TRUE(arguments);
  EXPECT_EQ(arguments->command, (std::vector<std::string>{"ls", "--json", "-o", "b"}));
  EXPECT_EQ(arguments->get("--output"), "a");
  EXPECT_FALSE(arguments->on("--json"));
  EXPECT_FALSE(asks_for_help(kCommandVerb, {"--", "ls", "--help"}));
  EXPECT_TRUE(asks_for_help(kCommandVerb, {"--help", "--", "ls"}));
}

TEST(CommandLine, ErrorsAreUsageErrorsWithAHint) {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{}, {"a", "b"}, {"x", "--no-such"}, {"x", "--output"}}) {
    const Result<Arguments> arguments = parse_arguments(kVerb, words);
    ASSERT_FALSE(arguments);
    EXPECT_EQ(arguments.error().code, ErrorCode::kUsage);
    EXPECT_EQ(arguments.error().hint, "llmprof test --help");
  }
}

TEST(Help, OptionsComeFromTheTable) {
  const std::string text = options_text(kVerb);
  EXPECT_NE(text.find("`-o, --output NAME`: where the run goes. Default: `fallback`. Variable: `LLMPROF_TEST_OUTPUT`."),
            std::string::npos)
      << text;
  const std::string page = "# x\n" + text + "after\n";
  EXPECT_EQ(with_current_options(kVerb, page), page);
}

TEST(Help, EveryVerbHasAPageWithExamplesFirst) {
  for (const Verb* verb : verbs()) {
    const std::string text = help_text(*verb);
    EXPECT_NE(text.find("EXAMPLES"), std::string::npos) << verb->name;
    EXPECT_LT(text.find("EXAMPLES"), text.find("OPTIONS")) << verb->name;
    for (const Option& option : verb->all_options()) {
      EXPECT_NE(text.find(option.flag), std::string::npos) << verb->name << " " << option.flag;
    }
  }
}

TEST(Verbs, OptionsAreWellFormed) {
  for (const Verb* verb : verbs()) {
    std::set<std::string_view> flags;  // an axis of an operator is a flag, too
    for (const Option& option : verb->all_options()) {
      EXPECT_TRUE(flags.insert(option.flag).second) << verb->name << " has " << option.flag << " twice";
      EXPECT_TRUE(option.flag.starts_with("--")) << option.flag;
      EXPECT_FALSE(option.help.empty()) << verb->name << " " << option.flag;
      EXPECT_TRUE(option.variable.empty() || option.variable.starts_with("LLMPROF_")) << option.variable;
    }
  }
}

}  // namespace
}  // namespace llmprof::app
