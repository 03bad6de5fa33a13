#pragma once
// Calls of the CUDA runtime and driver (both are in CUPTI_ACTIVITY_KIND_RUNTIME), of which those that may have launched
// work are kept to be found by it.

#include "importers/nsys_sqlite/actors.h"
#include "importers/nsys_sqlite/launches.h"
#include "importers/nsys_sqlite/stacks.h"

namespace llmprof::importers::nsys {

// `stack_ids`: what Launches::Call::stack is an index into.
Result<void> read_calls(Database& database, Strings& strings, Actors& actors, Launches& launches,
                        std::vector<trace::Id>& stack_ids);
// CUPTI_ACTIVITY_KIND_SYNCHRONIZATION tells the waits again, without names of functions: of use only where the calls
// themselves were not recorded.
Result<void> read_waits(Database& database, Actors& actors);

}  // namespace llmprof::importers::nsys
