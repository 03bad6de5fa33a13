// llmprof completion SHELL: prints a completion script.

#include <fmt/format.h>

#include "base/suggest.h"
#include "verb.h"

namespace llmprof::app {
namespace completion_verb {
namespace {

constexpr Option kOptions[] = {
    {"--values", "", "", "KIND", "",
     "print the names of a kind, one a line, as the scripts ask for them: models, devices, "
     "measures, formats, …"},
};
constexpr Positional kPositionals[] = {{"SHELL", false}};
constexpr std::string_view kShells[] = {"bash", "zsh", "fish"};

Error wrong_word(std::string_view what, const std::string& word, const std::vector<std::string_view>& known) {
  return {ErrorCode::kUsage, fmt::format("there is no {} '{}'", what, word),
          fmt::format("{}known: {}", base::did_you_mean(word, known), fmt::join(known, ", "))};
}

Result<int> run(const Arguments& arguments) {
  if (const std::string kind = arguments.get("--values"); !kind.empty()) {
    const std::vector<std::string> kinds = completion_kinds();
    if (std::ranges::find(kinds, kind) == kinds.end())
      return wrong_word("kind of names", kind, {kinds.begin(), kinds.end()});
    for (const std::string& value : completion_values(kind)) print(value + "\n");
    return 0;
  }
  if (arguments.positionals.empty())
    return Error{ErrorCode::kUsage, "completion needs SHELL", "llmprof completion bash, zsh or fish"};
  const std::string& shell = arguments.positionals[0];
  if (std::ranges::find(kShells, shell) == std::end(kShells))
    return wrong_word("completion for shell", shell, {std::begin(kShells), std::end(kShells)});
  print(completion_script(shell));
  return 0;
}

}  // namespace
}  // namespace completion_verb

extern const Verb kCompletion;
const Verb kCompletion{"completion",
                       "print a shell completion script",
                       completion_verb::kOptions,
                       completion_verb::kPositionals,
                       false,
                       completion_verb::run};

}  // namespace llmprof::app
