#pragma once
// What reading a stack needs besides the thread's own C stack, which may be small: room for its frames, and what is
// already known of them. One mapping for all threads, made at the first stack; a thread takes one of its parts for the
// time of a reading.

#include <atomic>
#include <cstdint>

#include "collect/stacks/unwind_rule.h"
#include "wire/format.h"

namespace llmprof::collect {

inline constexpr std::uint32_t kMaxPythonFrames = 128;
inline constexpr std::uint32_t kMaxNativeFrames = 64;
inline constexpr std::size_t kMaxText = 1024;  // bytes; what is longer is cut

struct PythonPlace {
  std::uintptr_t code, instruction;
};

// "Called by `parent`, this code object at this instruction is that stack". Code objects are freed and their addresses
// used again: what the object consists of tells one from the next.
struct alignas(64) KnownPython {
  PythonPlace place;
  std::uintptr_t name, file, lines;
  std::uint32_t first_line;
  wire::DefinitionId parent, stack;
};

struct KnownNative {
  std::uintptr_t address;  // 0: empty
  wire::DefinitionId parent, stack;
};

struct KnownRule {
  std::uintptr_t address;  // 0: empty
  UnwindRule rule;
  bool mapped;   // in an object
  bool skipped;  // in one of ours or the driver's
};

struct StackMemory {
  static constexpr std::uint32_t kKnown = 4096;  // of each kind

  std::atomic<std::uint32_t> taken;
  PythonPlace python[kMaxPythonFrames];
  std::uintptr_t native[kMaxNativeFrames];
  char text[kMaxText];
  KnownPython known_python[kKnown];
  KnownNative known_native[kKnown];
  KnownRule known_rules[kKnown];
};

// Null: no memory, or too many threads at once. Else give_back() must follow.
StackMemory* take_stack_memory();
inline void give_back(StackMemory* memory) { memory->taken.store(0, std::memory_order_release); }

// The stack in which `frame` is called by `parent`; 0: no room, counted.
wire::DefinitionId define_stack(wire::DefinitionId parent, const wire::FrameRecord& frame);
// Stands for the outer frames that found no room.
wire::DefinitionId left_out();

}  // namespace llmprof::collect
