// llmprof diff: compare runs: what got slower or faster, by how much, and why.

#include "verb.h"

namespace llmprof::app {
namespace {

constexpr Option kOptions[] = {{"--json", "", "", "", "", "print JSON"}};
constexpr Positional kPositionals[] = {{"RUN", true, true}};

int run(const Arguments&) { return fail({ErrorCode::kUnsupported, "diff: not there yet", ""}); }

}  // namespace

extern const Verb kDiff;
const Verb kDiff{"diff", "compare runs: what got slower or faster, by how much, and why", kOptions, kPositionals, false,
                 run};

}  // namespace llmprof::app
