#pragma once
// Host time of every range: total, and self = total less the ranges directly inside it on its thread.

#include <vector>

#include "analyze/passes/classify.h"
#include "trace/rows.h"

namespace llmprof::analyze {

// One row per range. `kernel_ns` as Attribution::range_kernel_ns counted it.
std::vector<trace::RangeTimeRow> range_times(const Ranges& ranges, const Classified& classified,
                                             const std::vector<std::int64_t>& kernel_ns, trace::Strings& strings);

}  // namespace llmprof::analyze
