#pragma once
// Python frames, read from CPython's structures in memory: by the collector inside its own process, by the host from
// outside. Everything is a template over Memory, which only has to offer
//   bool read(std::uint64_t address, void* out, std::size_t bytes);
//
// The layouts are byte offsets for 64-bit builds with a GIL. For 3.11 and 3.12 taken from offsetof over the headers of
// 3.11.2, 3.11.7 and 3.12.1; since 3.13 the interpreter's runtime begins with a table of its own offsets. Whoever uses
// them checks them against the live process before it trusts anything. Libc only, no allocation.

#include <cstddef>
#include <cstdint>

#include "wire/primitives.h"

namespace llmprof::wire {

struct PythonLayout {
  // _PyRuntimeState, PyInterpreterState, PyThreadState
  std::uint32_t runtime_interpreters, interpreter_next, interpreter_threads;
  std::uint32_t thread_next, thread_interpreter, thread_cframe, thread_native_id;
  // _PyCFrame: one per call of the interpreter loop, on the C stack. Since 3.13 there is none (has_cframe is false) and
  // thread_cframe is where the thread has its current frame.
  std::uint32_t cframe_current, cframe_previous;
  // _PyInterpreterFrame
  std::uint32_t frame_code, frame_previous, frame_instruction, frame_is_entry, frame_owner;
  bool entry_is_flag;  // the loop's first frame has a flag; else it is preceded by a frame owned by the C stack
  bool has_cframe;
  // PyCodeObject
  std::uint32_t code_first_line, code_file, code_name, code_lines, code_instructions;
  // PyUnicodeObject
  std::uint32_t text_of_ascii, text_of_others;
};

inline constexpr PythonLayout kPython311{
    .runtime_interpreters = 40,
    .interpreter_next = 0,
    .interpreter_threads = 16,
    .thread_next = 8,
    .thread_interpreter = 16,
    .thread_cframe = 56,
    .thread_native_id = 160,
    .cframe_current = 8,
    .cframe_previous = 16,
    .frame_code = 32,
    .frame_previous = 48,
    .frame_instruction = 56,
    .frame_is_entry = 68,
    .frame_owner = 69,
    .entry_is_flag = true,
    .has_cframe = true,
    .code_first_line = 72,
    .code_file = 112,
    .code_name = 128,
    .code_lines = 136,
    .code_instructions = 184,
    .text_of_ascii = 48,
    .text_of_others = 72,
};

inline constexpr PythonLayout kPython312{
    .runtime_interpreters = 40,
    .interpreter_next = 0,
    .interpreter_threads = 72,
    .thread_next = 8,
    .thread_interpreter = 16,
    .thread_cframe = 56,
    .thread_native_id = 144,
    .cframe_current = 0,
    .cframe_previous = 8,
    .frame_code = 0,
    .frame_previous = 8,
    .frame_instruction = 56,
    .frame_is_entry = 0,
    .frame_owner = 70,
    .entry_is_flag = false,
    .has_cframe = true,
    .code_first_line = 68,
    .code_file = 112,
    .code_name = 128,
    .code_lines = 136,
    .code_instructions = 192,
    .text_of_ascii = 40,
    .text_of_others = 56,
};

// nullptr for versions whose offsets are not listed here. `version` as PY_VERSION_HEX.
constexpr const PythonLayout* python_layout(std::uint64_t version) {
  switch (version >> 16) {
    case 0x030b:
      return &kPython311;
    case 0x030c:
      return &kPython312;
    default:
      return nullptr;
  }
}

// What 3.13 and later say of themselves at the begin of _PyRuntime: a cookie, the version, whether the build has no
// GIL, and offsets in groups, one word each. The groups grow: where they begin is per version.
inline constexpr std::uint32_t kPythonOffsetWords = 64;
inline constexpr char kPythonOffsetCookie[9] = "xdebugpy";

// False: a version, or a build, whose table is not known.
constexpr bool layout_from_offsets(const std::uint64_t (&words)[kPythonOffsetWords], PythonLayout* layout) {
  struct Groups {
    std::uint32_t runtime, interpreter, thread, frame, code, object;
  };
  constexpr Groups k313{3, 6, 19, 28, 34, 44}, k314{3, 6, 22, 31, 39, 50};
  const std::uint64_t version = words[1] >> 16, free_threaded = words[2];
  if ((version != 0x030d && version != 0x030e) || free_threaded != 0) return false;
  const Groups& at = version == 0x030d ? k313 : k314;
  constexpr std::uint64_t kObjectType = 8, kLargest = 1u << 24;
  if (words[at.object + 1] != kObjectType) return false;
  for (std::uint32_t i = at.runtime; i < at.object; ++i) {
    if (words[i] > kLargest) return false;
  }
  const auto word = [&](std::uint32_t i) { return static_cast<std::uint32_t>(words[i]); };
  *layout = kPython312;  // text has not changed since
  layout->runtime_interpreters = word(at.runtime + 2);
  layout->interpreter_next = word(at.interpreter + 2);
  layout->interpreter_threads = word(at.interpreter + 3);
  layout->thread_next = word(at.thread + 2);
  layout->thread_interpreter = word(at.thread + 3);
  layout->thread_cframe = word(at.thread + 4);
  layout->thread_native_id = word(at.thread + 6);
  layout->has_cframe = false;
  layout->frame_previous = word(at.frame + 1);
  layout->frame_code = word(at.frame + 2);
  layout->frame_instruction = word(at.frame + 3);
  layout->frame_owner = word(at.frame + 5);
  layout->code_file = word(at.code + 1);
  layout->code_name = word(at.code + 3);
  layout->code_lines = word(at.code + 4);
  layout->code_first_line = word(at.code + 5);
  layout->code_instructions = word(at.code + 9);
  return true;
}

template <class Memory, class T>
bool load(Memory& memory, std::uint64_t address, T* value) {
  return memory.read(address, value, sizeof(T));
}

// ---- frames ---------------------------------------------------------------------------------------------------------

struct PythonFrame {
  std::uint64_t code, previous, instruction;
  bool is_entry;  // 3.11: the first frame of a call of the interpreter loop
  bool is_shim;   // since 3.12 the same: a frame between calls of the loop, without code of its own
};

// False: unreadable, or no frame.
template <class Memory>
bool read_python_frame(Memory& memory, const PythonLayout& layout, std::uint64_t address, PythonFrame* frame) {
  constexpr std::uint8_t kFirstOwnerOfShim = 3;  // _PyInterpreterFrame::owner
  std::uint8_t owner = 0, entry = 0;
  if ((address & 7) != 0 || !load(memory, address + layout.frame_owner, &owner) ||
      !load(memory, address + layout.frame_code, &frame->code) ||
      !load(memory, address + layout.frame_instruction, &frame->instruction) ||
      !load(memory, address + layout.frame_previous, &frame->previous))
    return false;
  if (layout.entry_is_flag && !load(memory, address + layout.frame_is_entry, &entry)) return false;
  frame->code &= ~std::uint64_t{7};  // since 3.14 the low bits are a tag
  frame->is_entry = entry != 0;
  frame->is_shim = owner >= kFirstOwnerOfShim;
  return !layout.entry_is_flag || !frame->is_shim;
}

// The innermost frame of a PyThreadState; 0: none.
template <class Memory>
bool read_current_frame(Memory& memory, const PythonLayout& layout, std::uint64_t thread, std::uint64_t* frame) {
  if (!load(memory, thread + layout.thread_cframe, frame)) return false;
  return !layout.has_cframe || load(memory, *frame + layout.cframe_current, frame);
}

enum class PythonWalk : std::uint8_t { kGoOn, kEnd, kUnreadable };

// Visits at most `most` frames from `address` outwards. read(address, PythonFrame*) answers whether there is one,
// visit(frame) whether to go on. kGoOn: the outermost frame was reached.
template <class Read, class Visit>
PythonWalk walk_python_frames(std::uint64_t address, std::uint32_t most, Read read, Visit visit) {
  PythonFrame frame{};
  for (std::uint32_t i = 0; i < most; ++i, address = frame.previous) {
    if (address == 0) return PythonWalk::kGoOn;
    if (!read(address, &frame)) return PythonWalk::kUnreadable;
    if (const PythonWalk answer = visit(frame); answer != PythonWalk::kGoOn) return answer;
  }
  return PythonWalk::kUnreadable;
}

// ---- objects --------------------------------------------------------------------------------------------------------

// PyObject, PyVarObject, PyTypeObject, PyBytesObject: the same in all versions that are read.
inline constexpr std::uint32_t kPythonType = 8, kPythonSize = 16, kPythonTypeName = 24, kPythonBytes = 32;

// What a code object consists of besides its instructions. Code objects never change, but they are freed and their
// addresses used again: this tells one from the next.
struct PythonCodeParts {
  std::uint64_t name, file, lines;
  std::int32_t first_line;
  bool operator==(const PythonCodeParts&) const = default;
};

template <class Memory>
bool read_code_parts(Memory& memory, const PythonLayout& layout, std::uint64_t code, PythonCodeParts* parts) {
  return load(memory, code + layout.code_name, &parts->name) && load(memory, code + layout.code_file, &parts->file) &&
         load(memory, code + layout.code_lines, &parts->lines) &&
         load(memory, code + layout.code_first_line, &parts->first_line);
}

// A str as UTF-8, cut to the capacity. The number of bytes; -1: there is no str at this address.
template <class Memory>
int read_python_text(Memory& memory, const PythonLayout& layout, std::uint64_t object, char* out,
                     std::size_t capacity) {
  constexpr std::uint32_t kLength = 16, kState = 32;  // PyASCIIObject
  constexpr std::uint32_t kKindShift = 2, kCompact = 0x20, kAscii = 0x40;
  constexpr std::size_t kTogether = 128;  // letters read at a time
  std::int64_t length = 0;
  std::uint32_t state = 0;
  if (!load(memory, object + kLength, &length) || length < 0) return -1;
  if (!load(memory, object + kState, &state) || (state & kCompact) == 0) return -1;
  const std::uint32_t width = state >> kKindShift & 7;
  if (width != 1 && width != 2 && width != 4) return -1;
  const std::uint64_t text = object + ((state & kAscii) != 0 ? layout.text_of_ascii : layout.text_of_others);
  unsigned char part[kTogether * 4];
  std::size_t bytes = 0;
  const auto letters = static_cast<std::size_t>(length);
  for (std::size_t done = 0, count = 0; done < letters && bytes + 4 <= capacity; done += count) {
    count = letters - done < kTogether ? letters - done : kTogether;
    if (!memory.read(text + done * width, part, count * width)) return -1;
    for (std::size_t i = 0; i < count && bytes + 4 <= capacity; ++i) {
      std::uint32_t letter = 0;
      __builtin_memcpy(&letter, part + i * width, width);
      bytes += put_utf8(out + bytes, letter);
    }
  }
  return static_cast<int>(bytes);
}

}  // namespace llmprof::wire
