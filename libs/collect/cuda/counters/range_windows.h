#pragma once
// Counters of the program's ranges and of graph launches: one user range each, nothing executed twice.

#include "collect/cuda/cupti_abi.h"
#include "collect/cuda/counters/plan.h"
#include "wire/format.h"

namespace llmprof::collect::counters {

void start_range_windows(const Plan& plan);
void range_window_opens(wire::StringId name);
void range_window_closes();
void graph_window_begins(const cupti::CallbackData& data);
void graph_window_ended(const cupti::CallbackData& data);
void finish_range_windows();

}  // namespace llmprof::collect::counters
