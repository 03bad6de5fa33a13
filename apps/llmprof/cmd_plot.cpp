// llmprof plot: one picture of a run as SVG or PNG.

#include "verb.h"

namespace llmprof::app {
namespace {

constexpr Option kOptions[] = {{"--json", "", "", "", "", "print JSON"}};
constexpr Positional kPositionals[] = {{"RUN", true, true}};

int run(const Arguments&) { return fail({ErrorCode::kUnsupported, "plot: not there yet", ""}); }

}  // namespace

extern const Verb kPlot;
const Verb kPlot{"plot", "one picture of a run as SVG or PNG", kOptions, kPositionals, false, run};

}  // namespace llmprof::app
