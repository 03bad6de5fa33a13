// llmprof: the command line. Finds the verb, parses its arguments by its option table, runs it.

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "base/suggest.h"
#include "base/version.h"
#include "report/layout.h"
#include "verb.h"

namespace {

using namespace llmprof;

Error unknown_verb(const std::string& word, bool topics) {
  std::vector<std::string_view> known;
  for (const app::Verb* verb : app::verbs()) known.push_back(verb->name);
  if (topics) known.insert(known.end(), app::kTopics.begin(), app::kTopics.end());
  if (!topics && std::ranges::find(app::kTopics, word) != app::kTopics.end())
    return {ErrorCode::kUsage, "'" + word + "' is a page of the manual, not a verb", "llmprof help " + word};
  return {ErrorCode::kUsage, (topics ? "no manual page '" : "unknown verb '") + word + "'",
          base::did_you_mean(word, known) + "llmprof -h lists the verbs"};
}

app::PageStyle page_style() { return {std::min<std::size_t>(app::output_width(80), 100), app::colour_wanted()}; }

// llmprof help [VERB|TOPIC]
int help(const std::vector<std::string>& words) {
  if (words.size() < 2) {
    app::print(app::overview_text());
    return 0;
  }
  const app::Verb* verb = app::find_verb(words[1]);
  const std::string text =
      verb != nullptr ? app::help_text(*verb, page_style()) : app::topic_text(words[1], page_style());
  if (text.empty()) return app::fail(unknown_verb(words[1], true));
  app::print_paged(text);
  return 0;
}

int run(const std::vector<std::string>& words) {
  report::set_line_width(app::terminal_width());
  if (words.empty()) {
    app::print(app::overview_text());
    return 1;
  }
  if (words[0] == "--help" || words[0] == "-h" || words[0] == "help") return help(words);
  if (words[0] == "--version" || words[0] == "-V") {
    app::print("llmprof " + std::string(base::build_description()) + "\n");
    return 0;
  }
  const app::Verb* verb = app::find_verb(words[0]);
  if (verb == nullptr) return app::fail(unknown_verb(words[0], false));
  const std::vector<std::string> rest(words.begin() + 1, words.end());
  const app::Help asked = app::asks_for_help(*verb, rest);
  if (asked == app::Help::kShort) app::print(app::short_help(*verb));
  if (asked == app::Help::kManual) app::print_paged(app::help_text(*verb, page_style()));
  if (asked != app::Help::kNone) return 0;
  const Result<app::Arguments> arguments = app::parse_arguments(*verb, rest);
  if (!arguments) return app::fail(arguments.error());
  const Result<int> status = verb->run(*arguments);
  return status ? *status : app::fail(status.error());
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run({argv + 1, argv + argc});
  } catch (const std::exception& error) {  // bad_alloc or a third party's: nothing of ours throws
    std::fprintf(stderr, "llmprof: bug: %s\n", error.what());
    return 70;
  }
}
