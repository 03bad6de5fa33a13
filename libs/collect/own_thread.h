#pragma once
// Threads of the collector: detached, and deaf to signals, so that they never run the program's handlers.

#include <cstddef>

namespace llmprof::collect {

// False: errno says why. `stack_bytes` is raised where the program's thread-local data alone is larger.
bool start_own_thread(void* (*main)(void*), std::size_t stack_bytes);
void name_own_thread(const char* name);  // the calling one

}  // namespace llmprof::collect
