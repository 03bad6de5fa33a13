// llmprof view: look at runs in the browser, with all their data.

#include "verb.h"

namespace llmprof::app {
namespace {

constexpr Option kOptions[] = {{"--json", "", "", "", "", "print JSON"}};
constexpr Positional kPositionals[] = {{"RUN", true, true}};

int run(const Arguments&) { return fail({ErrorCode::kUnsupported, "view: not there yet", ""}); }

}  // namespace

extern const Verb kView;
const Verb kView{"view", "look at runs in the browser, with all their data", kOptions, kPositionals, false, run};

}  // namespace llmprof::app
