// llmprof completion SHELL: prints a completion script.

#include "verb.h"

namespace llmprof::app {
namespace {

constexpr Positional kPositionals[] = {{"SHELL"}};

int run(const Arguments& arguments) {
  const std::string& shell = arguments.positionals[0];
  if (shell != "bash" && shell != "zsh" && shell != "fish") {
    return fail({ErrorCode::kUsage, "no completion for shell '" + shell + "'", "known: bash, zsh, fish"});
  }
  print(completion_script(shell));
  return 0;
}

}  // namespace

extern const Verb kCompletion;
const Verb kCompletion{"completion", "print a shell completion script", {}, kPositionals, false, run};

}  // namespace llmprof::app
