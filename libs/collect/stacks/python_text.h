#pragma once
// A Python str as UTF-8, read from the object itself: the interpreter's own function would allocate.

#include <cstddef>
#include <cstdint>

#include "collect/stacks/python_runtime.h"
#include "collect/stacks/stack_memory.h"

namespace llmprof::collect {

// The number of bytes; -1: there is no str at this address.
int read_python_text(const PythonRuntime& runtime, std::uintptr_t object, char (&out)[kMaxText]);

}  // namespace llmprof::collect
