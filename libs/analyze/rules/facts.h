#pragma once
// What rules need to know beyond the summary, gathered once per run by SQL and native passes. One struct per subject,
// each in a file of its own under facts/.

#include "analyze/basis.h"
#include "analyze/summary.h"
#include "trace/run.h"

namespace llmprof::analyze {

struct Facts {};

Result<Facts> gather_facts(const trace::Run& run, const Basis& basis, const Summary& summary);

}  // namespace llmprof::analyze
