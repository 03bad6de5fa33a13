#pragma once
// Steps in which a program still warms up: the first ones of a stage, where they take much longer than the others.

#include <vector>

#include "analyze/passes/classify.h"

namespace llmprof::analyze {

// One for each step. Steps of one stage, thread and size are compared, in order of time: of eight or more, those at the
// begin that take over twice the median of the later half, until three in a row do not, but no more than a quarter of
// all. Of fewer, the first prefill alone, against the median of the others.
std::vector<bool> warm_up_steps(const std::vector<Step>& steps, const trace::Strings& strings);

}  // namespace llmprof::analyze
