#include "collect/stacks/launch_stack.h"

#include <sys/mman.h>

#include "collect/names.h"
#include "collect/os.h"
#include "collect/stacks/frames.h"
#include "collect/tables.h"

namespace llmprof::collect {
namespace {

constexpr std::uint32_t kParts = 64;

constinit std::atomic<wire::StringId> off_reason{0};
constinit std::atomic<StackMemory*> parts{nullptr};

StackMemory* map_parts() {
  constexpr std::size_t kBytes = kParts * sizeof(StackMemory);
  auto* memory = static_cast<StackMemory*>(map_memory(kBytes));
  StackMemory* expected = nullptr;
  if (memory == nullptr || parts.compare_exchange_strong(expected, memory)) return memory;
  munmap(memory, kBytes);
  return expected;
}

// Null: no memory, or too many threads at once.
StackMemory* take_stack_memory() {
  constexpr std::uint32_t kTries = 8;
  StackMemory* all = parts.load(std::memory_order_acquire);
  if (all == nullptr) all = map_parts();
  if (all == nullptr) return nullptr;
  // A thread finds what it knew, unless there are more than kParts of them.
  const auto first = static_cast<std::uint32_t>(tl.thread - g.shared.load(std::memory_order_relaxed)->threads);
  for (std::uint32_t i = 0; i < kTries; ++i) {
    StackMemory* part = &all[(first + i) % kParts];
    if (part->taken.exchange(1, std::memory_order_acquire) == 0) return part;
  }
  return nullptr;
}

void count_missing(const char* why) {
  count_loss(wire::LossKind::kStacksOff);
  wire::StringId none = 0;
  if (off_reason.load(std::memory_order_relaxed) != 0) return;
  if (off_reason.compare_exchange_strong(none, intern(why), std::memory_order_relaxed)) note("stacks", "%s", why);
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

wire::DefinitionId define_stack(wire::DefinitionId parent, const wire::FrameRecord& frame) {
  wire::Record definition = wire::blank(wire::RecordKind::kFrame);
  // Member by member: the padding counts when a definition is looked up.
  definition.frame.function = frame.function;
  definition.frame.file = frame.file;
  definition.frame.line = frame.line;
  definition.frame.kind = frame.kind;
  definition.frame.offset = frame.offset;
  const wire::DefinitionId id = define(definition);
  if (id == 0) return 0;
  definition = wire::blank(wire::RecordKind::kStack);
  definition.stack.parent = parent;
  definition.stack.frame = id;
  return define(definition);
}

wire::DefinitionId left_out() {
  wire::FrameRecord frame{};
  frame.kind = wire::FrameKind::kUnknown;
  frame.function = intern("<outer frames left out>");
  return define_stack(0, frame);
}

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
  memory->taken.store(0, std::memory_order_release);
  return stack;
}

}  // namespace llmprof::collect
