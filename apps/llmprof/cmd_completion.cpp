// llmprof completion SHELL: prints a completion script.

#include "verb.h"

namespace llmprof::app {
namespace completion_verb {
namespace {

constexpr Positional kPositionals[] = {{"SHELL"}};

Result<int> run(const Arguments& arguments) {
  const std::string& shell = arguments.positionals[0];
  if (shell != "bash" && shell != "zsh" && shell != "fish") {
    return Error{ErrorCode::kUsage, "no completion for shell '" + shell + "'", "known: bash, zsh, fish"};
  }
  print(completion_script(shell));
  return 0;
}

}  // namespace
}  // namespace completion_verb

extern const Verb kCompletion;
const Verb kCompletion{"completion",        "print a shell completion script", {}, completion_verb::kPositionals, false,
                       completion_verb::run};

}  // namespace llmprof::app
