#include "collect/stacks/stack_memory.h"

#include <string.h>
#include <sys/mman.h>

#include "collect/definition_table.h"
#include "collect/lifecycle.h"
#include "collect/names.h"

namespace llmprof::collect {
namespace {

constexpr std::uint32_t kParts = 64;
constexpr std::uint32_t kTries = 8;

constinit std::atomic<StackMemory*> parts{nullptr};

StackMemory* map_parts() {
  constexpr std::size_t kBytes = kParts * sizeof(StackMemory);
  void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  StackMemory* expected = nullptr;
  if (parts.compare_exchange_strong(expected, static_cast<StackMemory*>(memory))) {
    return static_cast<StackMemory*>(memory);
  }
  munmap(memory, kBytes);
  return expected;
}

wire::Record blank(wire::RecordKind kind) {
  wire::Record record;
  memset(static_cast<void*>(&record), 0, sizeof(record));
  record.kind = kind;
  return record;
}

}  // namespace

StackMemory* take_stack_memory() {
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

wire::DefinitionId define_stack(wire::DefinitionId parent, const wire::FrameRecord& frame) {
  wire::Record definition = blank(wire::RecordKind::kFrame);
  definition.frame.function = frame.function;
  definition.frame.file = frame.file;
  definition.frame.line = frame.line;
  definition.frame.kind = frame.kind;
  definition.frame.offset = frame.offset;
  const wire::DefinitionId id = define(definition);
  if (id == 0) return 0;
  definition = blank(wire::RecordKind::kStack);
  definition.stack.parent = parent;
  definition.stack.frame = id;
  return define(definition);
}

wire::DefinitionId left_out() {
  constexpr char kText[] = "<outer frames left out>";
  wire::FrameRecord frame{};
  frame.kind = wire::FrameKind::kUnknown;
  frame.function = intern_bytes(kText, sizeof(kText) - 1);
  return define_stack(0, frame);
}

}  // namespace llmprof::collect
