#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "base/strings.h"
#include "base/text_table.h"
#include "config_file.h"
#include "manual_page.h"
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
  EXPECT_EQ(asks_for_help(kCommandVerb, {"--", "ls", "--help"}), Help::kNone);
  EXPECT_EQ(asks_for_help(kCommandVerb, {"--help", "--", "ls"}), Help::kManual);
}

using Words = std::vector<std::string>;

TEST(CommandLine, TheFirstWordThatIsNoOptionBeginsTheCommand) {
  const auto command = [](const Words& words) { return parse_arguments(kCommandVerb, words)->command; };
  EXPECT_EQ(command({"ls", "--json", "-o", "b"}), (Words{"ls", "--json", "-o", "b"}));
  EXPECT_EQ(command({"-o", "a", "ls", "-l"}), (Words{"ls", "-l"}));
  EXPECT_EQ(command({"-oa", "ls"}), Words{"ls"});
  EXPECT_EQ(command({"--output=a", "--json", "ls", "--", "x"}), (Words{"ls", "--", "x"}));
  EXPECT_EQ(command({"--", "-o"}), Words{"-o"});
  EXPECT_EQ(command({"--json"}), Words{});
  EXPECT_EQ(asks_for_help(kCommandVerb, {"ls", "-h"}), Help::kNone);
  EXPECT_EQ(asks_for_help(kCommandVerb, {"-h", "ls"}), Help::kShort);
  EXPECT_EQ(asks_for_help(kCommandVerb, {"-o", "ls", "--help"}), Help::kManual);
  EXPECT_FALSE(parse_arguments(kCommandVerb, {"-o", "--", "ls"}));
  EXPECT_FALSE(parse_arguments(kCommandVerb, {"-o"}));
}

TEST(CommandLine, OptionsOfSeveralWordsEndAtTheDashes) {
  static constexpr Option kMany[] = {{"--range", "", "", "NAME", "", "names.", true}};
  static constexpr Positional kTool[] = {{"TOOL"}};
  constexpr Verb verb{"run", "takes a command", kMany, kTool, true, nothing};
  const auto with = parse_arguments(verb, {"nsys", "--range", "a", "b", "--", "ls"});
  EXPECT_EQ(with->all("--range"), (Words{"a", "b"}));
  EXPECT_EQ(with->command, Words{"ls"});
  const auto without = parse_arguments(verb, {"nsys", "--range", "a", "ls", "b"});
  EXPECT_EQ(without->all("--range"), Words{"a"});
  EXPECT_EQ(without->command, (Words{"ls", "b"}));
}

TEST(CommandLine, ASwitchCanBeSwitchedOff) {
  EXPECT_FALSE(parse_arguments(kVerb, {"x", "--json=false"})->on("--json"));
}

TEST(CommandLine, UnknownOptionsAreSuggested) {
  const auto wrong = parse_arguments(kVerb, {"x", "--jsno"});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().message, "test has no option --jsno");
  EXPECT_EQ(wrong.error().hint, "did you mean --json? llmprof test -h");
}

TEST(Config, TablesOfVerbs) {
  const auto of = [](std::string_view toml, Whose whose = Whose::kUser) {
    return parse_config(toml, "x.toml", whose, kVerb);
  };
  const auto found = of("[test]\noutput = 3.5\njson = true\n[report]\ntop = 30\n");
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(*found, (ConfiguredOptions{{"--json", {"1"}}, {"--output", {"3.5"}}}));
  EXPECT_TRUE(of("")->empty());
  EXPECT_TRUE(of("[ranges]\ntop = 3\nrules = []\n", Whose::kFolder)->empty());
  const auto hint = [&](std::string_view toml, Whose whose = Whose::kUser) {
    const auto wrong = of(toml, whose);
    return wrong ? "no error" : wrong.error().message + "; " + wrong.error().hint;
  };
  EXPECT_NE(hint("[reprot]\n").find("did you mean report?"), std::string::npos);
  EXPECT_NE(hint("[report]\ntopp = 3\n").find("did you mean top?"), std::string::npos);
  EXPECT_NE(hint("[test]\njson = 1\n").find("json = true or false"), std::string::npos);
  EXPECT_NE(hint("[test]\noutput = true\n").find("wrong kind"), std::string::npos);
  EXPECT_NE(hint("[test]\noutput = ['a']\n").find("wrong kind"), std::string::npos);
  EXPECT_NE(hint("limit = 3\n").find("no verb"), std::string::npos);
  EXPECT_NE(hint("report = 3\n").find("no table"), std::string::npos);
  EXPECT_NE(hint("[test\n").find("line 1"), std::string::npos);
  EXPECT_NE(hint("[test]\noutput = 'x'\n", Whose::kFolder).find("not taken from the file of a folder"),
            std::string::npos);
}

// What a file of a folder may not do: whoever adds an option that writes, listens or loads adds it here, too.
TEST(Config, AFolderOnlyChoosesWhatIsMeasuredAndShown) {
  for (const char* refused :
       {"[record]\noutput='x'", "[record]\nforce=true", "[record]\ncontrol='/tmp/x'", "[report]\nhtml='x.html'",
        "[view]\nlisten='0.0.0.0'", "[view]\nallow-sql=true", "[view]\ni-understand=true", "[import]\nno-sandbox=true",
        "[bench]\ncsv='x.csv'", "[query]\nfile='x.sql'", "[diff]\njunit='x.xml'", "[monitor]\noutput='x.csv'"}) {
    EXPECT_FALSE(parse_config(refused, "x.toml", Whose::kFolder, kVerb)) << refused;
    EXPECT_TRUE(parse_config(refused, "x.toml", Whose::kUser, kVerb)) << refused;
  }
  for (const char* allowed :
       {"[report]\ntop=3\nmodel='gpt2'", "[record]\ngpu='waits'\nmodules=true", "[query]\ncsv=true"})
    EXPECT_TRUE(parse_config(allowed, "x.toml", Whose::kFolder, kVerb)) << allowed;
}

TEST(CommandLine, ErrorsAreUsageErrorsWithAHint) {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{}, {"a", "b"}, {"x", "--no-such"}, {"x", "--output"}}) {
    const Result<Arguments> arguments = parse_arguments(kVerb, words);
    ASSERT_FALSE(arguments);
    EXPECT_EQ(arguments.error().code, ErrorCode::kUsage);
    EXPECT_EQ(arguments.error().hint, "llmprof test -h");
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

std::vector<std::string_view> lines_of(std::string_view text) {
  return base::split(text.substr(0, text.size() - 1), '\n');
}

TEST(Help, TheShortOneIsOneScreen) {
  std::vector<std::pair<std::string, std::string>> screens{{"overview", overview_text()}};
  for (const Verb* verb : verbs()) screens.emplace_back(verb->name, short_help(*verb));
  for (const auto& [name, text] : screens) {
    EXPECT_LE(lines_of(text).size(), 40u) << name << "\n" << text;
    for (const std::string_view line : lines_of(text))
      EXPECT_LE(base::display_width(line), 80u) << name << ": " << line;
    EXPECT_EQ(text.find('`'), std::string::npos) << text;
  }
  for (const Verb* verb : verbs()) {
    const std::string text = short_help(*verb);
    EXPECT_NE(text.find("Examples:\n  llmprof"), std::string::npos) << text;
    EXPECT_NE(text.find("--help shows the manual"), std::string::npos) << text;
    for (const std::string_view flag : base::split(common_options(*verb), ' ')) {
      EXPECT_NE(text.find(flag), std::string::npos) << verb->name << " has no option " << flag;
    }
  }
}

TEST(Help, NothingOfTheMarkupIsLeft) {
  std::vector<std::string> pages;
  for (const Verb* verb : verbs()) pages.push_back(help_text(*verb));
  for (const std::string_view topic : kTopics) {
    pages.push_back(topic_text(topic));
    EXPECT_FALSE(pages.back().empty()) << topic;
  }
  EXPECT_EQ(topic_text("no-such"), "");
  for (const std::string& page : pages) {
    for (const std::string_view line : lines_of(page)) {
      if (line.starts_with("      ") || base::contains(line, "***")) continue;  // code keeps what it has
      for (const std::string_view markup : {"`", "**", "](", "|--", "<!--", "```"})
        EXPECT_EQ(line.find(markup), std::string_view::npos) << markup << " in: " << line;
      EXPECT_LE(base::display_width(line), 80u) << line;
      EXPECT_FALSE(line.starts_with('#')) << line;
    }
  }
}

TEST(Help, PagesAreLaidOut) {
  const std::string page = rendered_page(
      "# a *title*\n\nSome `code` and **bold** text, a [page](record.md), a [file](../format/run.md) and\n"
      "[run.md](../format/run.md); 2 * 3 * 4.\n\n## Part\n\n- an item that\n  goes on\n1. one\n\n```\nx | y  # "
      "z\n```\n\n"
      "| a | b |\n|---|---|\n| `x|y` | long words in a cell that must be wrapped |\n",
      {.width = 40, .bold = true});
  EXPECT_EQ(
      page,
      "\033[1ma title\033[0m\n\n  Some code and bold text, a page\n  (llmprof help record), a file\n"
      "  (docs/format/run.md) and\n  docs/format/run.md; 2 * 3 * 4.\n\n\033[1mPART\033[0m\n\n  - an item that goes on\n"
      "  1. one\n\n      x | y  # z\n\n  a    b\n  x|y  long words in a cell that must be\n       wrapped\n")
      << page;
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
