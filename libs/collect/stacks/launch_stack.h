#pragma once
// The stack of the calling thread, as it stands in a CUDA launch, an allocation or the creation of a graph node.

#include "wire/format.h"

namespace llmprof::collect {

// A kStack definition whose chain of parents leads to the outermost frame; 0: not asked for, or not readable (then
// counted as kStacksOff). Called on the program's threads, between enter() and leave(): no lock, no allocation.
wire::DefinitionId launch_stack();

}  // namespace llmprof::collect
