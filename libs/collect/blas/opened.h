#pragma once
// Files of a model that the program opened, so that a report can say which model ran. A few paths in static memory,
// handed to the collector with the first BLAS call; a process that makes none leaves nothing.

#include <atomic>

#include "wire/collector_v1.h"

namespace llmprof::collect::blas {

extern constinit std::atomic<std::uint32_t> opened_waiting;  // noted, not handed over yet

void hand_over_opened(const llmprof_collector_table* table);

}  // namespace llmprof::collect::blas
