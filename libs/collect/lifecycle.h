#pragma once
// From the first event to the end of the process image, and across fork.

#include "collect/state.h"

namespace llmprof::collect {

// Whether this process is recorded at all. Reads the settings the first time.
bool enabled();

// The mapping, made when first asked for; null: there is no memory, or recording is off.
Shared* shared_memory();

// Opens the log and starts the writer, if that has not happened. For facts that come without an event.
void start_now();

// Stops recording for good: later events are counted under `reason`.
void stop_recording(wire::LossKind reason);

// Orderly end: everything into the log, within two seconds. Safe to call twice.
void end_recording();

// Everything that was recorded so far into the log, within a fifth of a second. Safe in a signal handler.
void flush_recording();

// The process ends without exit handlers. What CUPTI still has cannot be fetched then: where CUDA was used the log says
// that its end is missing.
void leave_recording();

// The one thread of the collector: takes what the program's threads have recorded, encodes it, appends it to the log.

// Starts it, with all signals blocked. False: the system would not.
bool start_writer();

}  // namespace llmprof::collect
