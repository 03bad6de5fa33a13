#pragma once
// Why a stage or a part takes another time than before, in nanoseconds of a step.

#include <vector>

#include "analyze/diff/diff.h"

namespace llmprof::analyze {

std::vector<Reason> reasons_of(const PartDigest& before, const PartDigest& after, const StageDigest* stage_before,
                               const StageDigest* stage_after);
// Of a stage by the operators of both runs, its idle times and its work.
std::vector<Reason> reasons_of(const StageDigest& before, const StageDigest& after, const Digest& run_before,
                               const Digest& run_after);

}  // namespace llmprof::analyze
