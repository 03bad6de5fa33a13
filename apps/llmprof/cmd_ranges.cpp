// llmprof ranges: how the ranges of a run were understood, and why; a file of rules to start from.

#include "analyze/context.h"
#include "analyze/derive.h"
#include "analyze/names/ranges.h"
#include "base/json.h"
#include "given_names.h"
#include "record/open_run.h"
#include "report/ranges.h"
#include "report_verb.h"
#include "run_head.h"
#include "verb.h"

namespace llmprof::app {
namespace ranges_verb {
namespace {

constexpr Option kOptions[] = {
    {"--ranges", "", "LLMPROF_RANGES", "FILE", "",
     "rules for names of ranges, a TOML file; llmprof.toml of this folder unless given"},
    {"--rules", "", "", "", "", "print how the names are understood as rules: a file to start from"},
    {"--json", "", "", "", "", "print names, meanings and the tree as JSON"},
    {"--top", "", "LLMPROF_TOP", "N", "40", "rows of each table"},
};
constexpr Positional kPositionals[] = {{"RUN", false}};

Result<std::string> show(const Arguments& arguments) {
  LLMPROF_LET(const std::size_t top, top_in(arguments));
  const base::Progress progress = progress_line();
  LLMPROF_LET(const RunArgument given, run_argument(arguments));
  LLMPROF_LET(trace::Run run, record::open_run(given.run, progress));
  LLMPROF_LET(const analyze::AnalysisContext analysis,
              analyze::find_context(run, {.model = "", .ranges = arguments.get("--ranges")}));
  LLMPROF_TRY(analyze::ensure_derived(run, analysis, progress));
  LLMPROF_LET(const std::vector<analyze::NameMeaning> meanings, analyze::name_meanings(run));
  LLMPROF_LET(const std::vector<analyze::RangeNode> tree, analyze::range_tree(run));
  if (arguments.on("--rules")) return analyze::rules_text(meanings);
  if (arguments.on("--json")) {
    LLMPROF_LET(base::Json json, run_head("llmprof.ranges", run));
    json["names"] = report::meanings_json(meanings);
    json["tree"] = report::range_tree_json(tree);
    return base::to_text(json);
  }
  if (meanings.empty()) return std::string("The run has no ranges: the program announced none.\n");
  const report::Style style{colour_wanted()};
  return style.heading("Names").substr(1) + report::meaning_table(meanings, top) + style.heading("Tree") +
         report::range_tree_table(tree, top);
}

Result<int> run(const Arguments& arguments) {
  LLMPROF_LET(const std::string text, show(arguments));
  print(text);
  return 0;
}

}  // namespace
}  // namespace ranges_verb

extern const Verb kRanges;
const Verb kRanges{"ranges",
                   "show how the names of a program's ranges were understood",
                   ranges_verb::kOptions,
                   ranges_verb::kPositionals,
                   false,
                   ranges_verb::run};

}  // namespace llmprof::app
