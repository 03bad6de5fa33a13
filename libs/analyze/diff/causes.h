#pragma once
// Where the change of a stage comes from, and the sentence that says it.

#include <string>

#include "analyze/diff/diff.h"

namespace llmprof::analyze {

double moved(const DiffRow& row);  // after - before; what is not there takes no time
void find_causes(Diff& diff);      // fills Diff::causes; significance must be known
std::string headline(const Diff& diff);

}  // namespace llmprof::analyze
