#include "collect/stacks/launch_stack.h"

#include "collect/cuda/facts.h"
#include "collect/names.h"
#include "collect/stacks/native_frames.h"
#include "collect/stacks/python_frames.h"

namespace llmprof::collect {
namespace {

constinit std::atomic<wire::StringId> off_reason{0};

void count_missing(const char* why) {
  count_loss(wire::LossKind::kStacksOff);
  wire::StringId none = 0;
  if (off_reason.load(std::memory_order_relaxed) != 0) return;
  if (off_reason.compare_exchange_strong(none, intern(why), std::memory_order_relaxed)) note("stacks", why);
}

// True: there are Python frames.
bool add_python(StackMemory* memory, wire::DefinitionId* stack) {
  switch (add_python_frames(memory, stack)) {
    case PythonAnswer::kStack:
      return true;
    case PythonAnswer::kNothing:
      return false;
    case PythonAnswer::kSeveral:
      count_missing("several Python interpreters in one process: frames are not read");
      return false;
    case PythonAnswer::kNotYet:  // the first milliseconds of a program whose threads begin together: nobody waits
      count_loss(wire::LossKind::kStacksOff);
      return false;
    case PythonAnswer::kUnknownPython:
      count_missing(why_no_python());
      return false;
  }
  return false;
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
  const bool python = (g.settings.stacks & kStacksPython) != 0 && add_python(memory, &stack);
  if ((g.settings.stacks & kStacksNative) != 0) {
    const AddressRange until = python ? python_code() : AddressRange{};
    if (!add_native_frames(memory, until, &stack) && !python) count_missing("native frames are not readable here");
  }
  give_back(memory);
  return stack;
}

}  // namespace llmprof::collect
