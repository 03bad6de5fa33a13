#pragma once
// The one thread of the collector: takes what the program's threads have recorded, encodes it, appends it to the log.

namespace llmprof::collect {

// Starts it, with all signals blocked. False: the system would not.
bool start_writer();

}  // namespace llmprof::collect
