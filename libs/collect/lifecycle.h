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

}  // namespace llmprof::collect
