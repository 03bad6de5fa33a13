#pragma once
// Modules, operators and shapes of a run, per step of their stage, with the kernels that did their work.

#include <vector>

#include "analyze/diff/digest.h"

namespace llmprof::analyze {

Result<std::vector<PartDigest>> part_digests(const trace::Run& run, const Summary& summary);

}  // namespace llmprof::analyze
