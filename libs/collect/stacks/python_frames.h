#pragma once
// The Python frames of the calling thread, read from the interpreter's structures: programs launch without the GIL, so
// its API gives no stack, but a thread's own frames cannot change while it is in the call. Code objects never change.

#include "collect/stacks/native_frames.h"
#include "collect/stacks/python_runtime.h"
#include "collect/stacks/stack_memory.h"

namespace llmprof::collect {

enum class PythonAnswer : std::uint8_t {
  kStack,
  kNothing,        // no Python, or none on this thread
  kUnknownPython,  // it is there, and cannot be read
  kSeveral,        // several interpreters: a thread does not say which one it is in
  kNotYet,         // another thread is finding out where this Python keeps its frames
};

// Adds this thread's Python frames to `stack`, the innermost last.
PythonAnswer add_python_frames(StackMemory* memory, wire::DefinitionId* stack);

// Where the interpreter's own code is; empty: nowhere.
AddressRange python_code();

// For kUnknownPython: why.
const char* why_no_python();

}  // namespace llmprof::collect
