#include "collect/stacks/launch_stack.h"

namespace llmprof::collect {

wire::DefinitionId launch_stack() { return 0; }

}  // namespace llmprof::collect
