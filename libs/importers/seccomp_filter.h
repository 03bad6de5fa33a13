#pragma once
// The system calls that a reader of files may make.

#include "base/result.h"

namespace llmprof::importers {

// For this thread and all it will start; cannot be undone. Needs no privilege. What threads, memory, time and reading
// open files need is allowed. Calls that no honest reader makes (starting programs, sockets, tracing) end the process
// with SIGSYS. Everything else is refused with EPERM: the C library and others probe for things they can do without,
// and a refused call leaves an attacker with no more than a dead process would.
Result<void> allow_reading_only();

}  // namespace llmprof::importers
