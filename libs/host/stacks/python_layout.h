#pragma once
// Where CPython keeps what a stack shows: byte offsets in its structures, per version, for 64-bit release builds. Taken
// from offsetof over the headers of 3.11.2, 3.11.7 and 3.12.1; python_process checks them against the live process
// before it believes anything.

#include <cstdint>

namespace llmprof::host {

struct PythonLayout {
  // _PyRuntimeState, PyInterpreterState, PyThreadState
  std::uint32_t runtime_interpreters, interpreter_next, interpreter_threads;
  std::uint32_t thread_next, thread_interpreter, thread_cframe, thread_native_id;
  // _PyCFrame: one per call of the interpreter loop, on the C stack
  std::uint32_t cframe_current, cframe_previous;
  // _PyInterpreterFrame
  std::uint32_t frame_code, frame_previous, frame_instruction, frame_is_entry, frame_owner;
  bool entry_is_flag;  // the loop's first frame has a flag; else it is preceded by a frame owned by the C stack
  // PyCodeObject
  std::uint32_t code_first_line, code_file, code_name, code_lines, code_instructions;
  // PyUnicodeObject
  std::uint32_t text_of_ascii, text_of_others;
};

// nullptr for versions that are not known. `version` as PY_VERSION_HEX.
const PythonLayout* python_layout(std::uint64_t version);

}  // namespace llmprof::host
