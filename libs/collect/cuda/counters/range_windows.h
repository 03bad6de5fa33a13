#pragma once
// Counters of the program's ranges and of graph launches: one user range of CUPTI's each, nothing executed twice.
//
// Which: the innermost ranges whose names match the plan; one at a time in a process, as there is one profiler. In a
// program without such ranges, launches of graphs. How often: as the budget allows (window_choice.h).

#include "collect/cuda/counters/plan.h"
#include "collect/cuda/cupti_abi.h"
#include "wire/format.h"

namespace llmprof::collect::counters {

void start_range_windows(const Plan& plan);
void range_window_opens(wire::StringId name, std::uint32_t domain, int level);
void range_window_closes(std::uint32_t domain, int level);
void graph_window_begins(const cupti::CallbackData& data);
void graph_window_ended();
void launch_in_window(const cupti::CallbackData& data, wire::LaunchOp op);
void range_capture_begins();
void range_context_ends(void* context);
void look_at_range_windows(bool idle);
void finish_range_windows();

}  // namespace llmprof::collect::counters
