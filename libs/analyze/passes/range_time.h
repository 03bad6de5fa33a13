#pragma once
// Host time of every range: total, and self = total less the ranges directly inside it on its thread.

#include <functional>
#include <vector>

#include "analyze/passes/classify.h"
#include "trace/rows.h"

namespace llmprof::analyze {

// Calls emit with one row per range. `kernel_ns` as Attribution::range_kernel_ns counted it.
void for_each_range_time(const Ranges& ranges, const Classified& classified, const std::vector<std::int64_t>& kernel_ns,
                         trace::Strings& strings, const std::function<void(const trace::RangeTimeRow&)>& emit);

}  // namespace llmprof::analyze
