#pragma once
// The parts of a launch stack: the memory that reading one needs, Python frames, native frames.

#include <atomic>
#include <cstdint>

#include "wire/eh_frame.h"
#include "wire/format.h"
#include "wire/python_frames.h"

namespace llmprof::collect {

inline constexpr std::uint32_t kMaxPythonFrames = 128;
inline constexpr std::uint32_t kMaxNativeFrames = 64;
inline constexpr std::size_t kMaxText = 1024;  // bytes; what is longer is cut

struct PythonPlace {
  std::uint64_t code, instruction;
  bool operator==(const PythonPlace&) const = default;
};

// "Called by `parent`, this code object at this instruction is that stack."
struct alignas(64) KnownPython {
  PythonPlace place;
  wire::PythonCodeParts parts;
  wire::DefinitionId parent, stack;
};

struct KnownNative {
  std::uintptr_t address;  // 0: empty
  wire::DefinitionId parent, stack;
};

// How to get from a frame of the C stack to its caller: what the unwind tables say of ordinary functions, in short. The
// caller's stack pointer is the CFA, its address is just below. Everything else ends the stack.
struct UnwindStep {
  enum class Cfa : std::uint8_t { kUnknown, kStackPointer, kFramePointer, kAtFramePointer } cfa;
  enum class Frame : std::uint8_t { kKept, kAtCfa, kAtFramePointer, kLost } frame;  // the caller's rbp
  std::int32_t cfa_offset, frame_offset;
};

struct KnownStep {
  std::uintptr_t address;  // 0: empty
  UnwindStep step;
  bool mapped;   // in an object
  bool skipped;  // in one of ours or the driver's
};

// Besides the thread's own C stack, which may be small: space for the frames, and what is already known of them. One
// mapping for all threads, made at the first stack; a thread takes one of its parts for the time of a reading.
struct StackMemory {
  static constexpr std::uint32_t kKnown = 4096;  // of each kind

  std::atomic<std::uint32_t> taken;
  PythonPlace python[kMaxPythonFrames];
  std::uintptr_t native[kMaxNativeFrames];
  char text[kMaxText];
  KnownPython known_python[kKnown];
  KnownNative known_native[kKnown];
  KnownStep known_steps[kKnown];
};

// The stack in which `frame` is called by `parent`; 0: the table is full, counted.
wire::DefinitionId define_stack(wire::DefinitionId parent, const wire::FrameRecord& frame);
// Stands for the outer frames beyond the capacity.
wire::DefinitionId left_out();

struct AddressRange {
  std::uintptr_t begin, end;
};

enum class PythonAnswer : std::uint8_t {
  kStack,
  kNothing,        // no Python, or none on this thread
  kUnknownPython,  // it is there, and cannot be read
  kSeveral,        // several interpreters: a thread does not say which one it is in
  kNotYet,         // another thread is finding out where this Python keeps its frames
};

// Adds this thread's Python frames to `stack`, the innermost last. They are read from the interpreter's structures:
// programs launch without the GIL, so its API gives no stack, but a thread's own frames cannot change during the call.
PythonAnswer add_python_frames(StackMemory* memory, wire::DefinitionId* stack);
AddressRange python_code();   // where the interpreter's own code is; empty: nowhere
const char* why_no_python();  // for kUnknownPython

// Adds the frames of this thread to `stack`, the innermost last: from the caller of the CUDA driver outwards, up to the
// first frame in `until` (the interpreter, whose own frames are there already) or the outermost. Every word that is
// read lies above the stack pointer in readable memory, whatever the tables say. False: not readable. x86-64.
bool add_native_frames(StackMemory* memory, const AddressRange& until, wire::DefinitionId* stack);

}  // namespace llmprof::collect
