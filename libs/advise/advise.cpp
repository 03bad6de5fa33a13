#include "advise/advise.h"

#include "advise/makers.h"
#include "advise/mistakes.h"

namespace llmprof::advise {

Step Context::run_step(std::string why, std::vector<std::string> words, std::vector<std::string> environment) const {
  Step step{std::move(why), given.environment, std::move(words), "", "", ""};
  step.environment.insert(step.environment.end(), environment.begin(), environment.end());
  step.words.insert(step.words.end(), given.program.begin(), given.program.end());
  return step;
}

Step import_step(const std::vector<std::string>& files, const std::string& output) {
  Step step{"make a run of it; `llmprof report` then shows it", {}, {"llmprof", "import"}, "", "", ""};
  step.words.insert(step.words.end(), files.begin(), files.end());
  step.words.insert(step.words.end(), {"-o", output});
  return step;
}

Result<Advice> advise(const std::string& tool, const Wish& wish) {
  if (tool != "nsys" && tool != "ncu" && tool != "cublas" && tool != "torch") {
    return Error{ErrorCode::kUsage, "no advice about " + tool, "there is advice about nsys, ncu, cublas and torch"};
  }
  Context context{wish, read_command(wish.command), std::nullopt};
  if (context.given.program.empty()) {
    return Error{ErrorCode::kUsage, "no program to profile is given",
                 "llmprof advise " + tool + " -- python3 program.py"};
  }
  if (wish.run != nullptr) {
    LLMPROF_LET(context.hints, hints_of(*wish.run, wish.stage));
  }
  Result<Advice> advice = tool == "nsys"     ? Result<Advice>(advise_nsys(context))
                          : tool == "ncu"    ? Result<Advice>(advise_ncu(context))
                          : tool == "cublas" ? Result<Advice>(advise_cublas(context))
                                             : advise_torch(context);
  if (advice) advice->mistakes = mistakes_in(context.given);
  return advice;
}

}  // namespace llmprof::advise
