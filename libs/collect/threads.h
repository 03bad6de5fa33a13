#pragma once
// Slots of threads and the buffers they fill.

#include "collect/state.h"

namespace llmprof::collect {

// Destructor of the thread-specific key: hands the last buffer over.
void on_thread_exit(void* thread);

// Gives back what the writer has finished with.
void free_thread(std::uint32_t index);

}  // namespace llmprof::collect
