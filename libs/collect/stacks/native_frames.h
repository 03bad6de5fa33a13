#pragma once
// The C stack of the calling thread, read by the unwind tables of the mapped objects (glibc's lock-free look-up finds
// them). Every word that is read lies above the stack pointer in memory that can be read, whatever the tables say.
// x86-64.

#include "collect/stacks/python_runtime.h"
#include "collect/stacks/stack_memory.h"

namespace llmprof::collect {

// Adds the frames of this thread to `stack`, the innermost last: from the caller of the CUDA driver outwards, up to the
// first frame in `until` (the interpreter, whose own frames are there already) or the outermost. False: not readable.
bool add_native_frames(StackMemory* memory, const AddressRange& until, wire::DefinitionId* stack);

}  // namespace llmprof::collect
