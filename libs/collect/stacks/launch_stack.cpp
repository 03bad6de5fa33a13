#include "collect/stacks/launch_stack.h"

#include "collect/names.h"
#include "collect/stacks/python_frames.h"

namespace llmprof::collect {
namespace {

constinit std::atomic<wire::StringId> off_reason{0};

void count_missing(const char* why) {
  count_loss(wire::LossKind::kStacksOff);
  if (off_reason.load(std::memory_order_relaxed) == 0) off_reason.store(intern(why), std::memory_order_relaxed);
}

void add_python(StackMemory* memory, wire::DefinitionId* stack) {
  switch (add_python_frames(memory, stack)) {
    case PythonAnswer::kUnknownPython:
      return count_missing(why_no_python());
    case PythonAnswer::kSeveral:
      return count_missing("several Python interpreters in one process: frames are not read");
    default:
      return;
  }
}

}  // namespace

wire::StringId stacks_off_reason() { return off_reason.load(std::memory_order_relaxed); }

wire::DefinitionId launch_stack() {
  if (g.settings.stacks == 0) return 0;
  StackMemory* memory = take_stack_memory();
  if (memory == nullptr) {
    count_missing("no memory, or more than 64 threads launch at once");
    return 0;
  }
  wire::DefinitionId stack = 0;
  if ((g.settings.stacks & kStacksPython) != 0) add_python(memory, &stack);
  give_back(memory);
  return stack;
}

}  // namespace llmprof::collect
