#pragma once
// The stack of the calling thread, as it stands in a CUDA launch, an allocation or the creation of a graph node.

#include "wire/format.h"

namespace llmprof::collect {

// A kStack definition whose chain of parents leads to the outermost frame; 0: not asked for, nothing there (a thread
// without Python), or not readable (then counted as kStacksOff). Called on the program's threads, between enter() and
// leave(): no lock, no allocation but for its own memory the first time. Makes no event: the caller's reserved record
// stays the next one.
wire::DefinitionId launch_stack();
// The same from outside of an event: 0 inside of one.
wire::DefinitionId stack_here();

// Why stacks are missing, for the loss record of kStacksOff; 0: they are not.
wire::StringId stacks_off_reason();

}  // namespace llmprof::collect
