// llmprof advise: the command lines of other tools that collect what llmprof can import.

#include <optional>

#include "advise/advise.h"
#include "analyze/context.h"
#include "analyze/derive.h"
#include "base/json.h"
#include "record/open_run.h"
#include "verb.h"

namespace llmprof::app {
namespace advise_verb {
namespace {

constexpr Option kOptions[] = {
    {"--run", "", "", "RUN", "",
     "an earlier run of the program: its hot kernels and the ranges of its stages become filters"},
    {"--stage", "", "", "STAGE", "", "the stage of that run to look at; the one with most GPU time if it is not given"},
    {"--output", "-o", "", "NAME", "profile",
     "base name of the files that the commands write, and of the imported run"},
    {"--json", "", "", "", "", "print the advice as JSON"},
};
constexpr Positional kPositionals[] = {{"nsys|ncu|cublas|torch"}};

Result<trace::Run> analyzed_run(const std::string& name) {
  const base::Progress progress = progress_line();
  LLMPROF_LET(trace::Run run, record::open_run(name, progress));
  LLMPROF_LET(const analyze::AnalysisContext analysis, analyze::find_context(run, {}));
  LLMPROF_TRY(analyze::ensure_derived(run, analysis, progress));
  return run;
}

Result<int> run(const Arguments& arguments) {
  advise::Wish wish;
  wish.command = arguments.command;
  wish.stage = arguments.get("--stage");
  wish.output = arguments.get("--output");
  wish.places = advise::places_here();
  if (!wish.stage.empty() && !arguments.given("--run")) {
    return Error{ErrorCode::kUsage, "--stage needs the run it is a stage of", "--run RUN"};
  }
  std::optional<trace::Run> run;
  if (arguments.given("--run")) {
    LLMPROF_LET(run, analyzed_run(arguments.get("--run")));
    wish.run = &*run;
  }
  LLMPROF_LET(const advise::Advice advice, advise::advise(arguments.positionals.at(0), wish));
  if (arguments.on("--json")) {
    base::Json json = json_head("llmprof.advise");
    json.update(advise::to_json(advice));
    print(base::to_text(json));
  } else {
    print(advise::to_text(advice));
  }
  return 0;
}

}  // namespace
}  // namespace advise_verb

extern const Verb kAdvise;
const Verb kAdvise{"advise",
                   "print command lines of other tools, to import what they write",
                   advise_verb::kOptions,
                   advise_verb::kPositionals,
                   true,
                   advise_verb::run};

}  // namespace llmprof::app
