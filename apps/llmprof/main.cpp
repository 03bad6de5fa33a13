// llmprof: the command line. Finds the verb, parses its arguments by its option table, runs it.

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "base/version.h"
#include "report/layout.h"
#include "verb.h"

namespace {

using namespace llmprof;

int run(const std::vector<std::string>& words) {
  report::set_line_width(app::terminal_width());
  if (words.empty() || words[0] == "--help" || words[0] == "-h" || words[0] == "help") {
    if (const app::Verb* verb = words.size() > 1 ? app::find_verb(words[1]) : nullptr) {
      app::print(app::help_text(*verb));
    } else {
      app::print(app::overview_text());
    }
    return words.empty() ? 1 : 0;
  }
  if (words[0] == "--version" || words[0] == "-V") {
    app::print("llmprof " + std::string(base::build_description()) + "\n");
    return 0;
  }
  const app::Verb* verb = app::find_verb(words[0]);
  if (verb == nullptr) {
    return app::fail({ErrorCode::kUsage, "unknown verb '" + words[0] + "'", "llmprof --help lists the verbs"});
  }
  const std::vector<std::string> rest(words.begin() + 1, words.end());
  if (app::asks_for_help(*verb, rest)) {
    app::print(app::help_text(*verb));
    return 0;
  }
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
