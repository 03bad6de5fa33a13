#pragma once
// The Python interpreter of this process, if there is one: its functions that need no GIL, and where its structures
// have what a stack shows. Looked up in the mapped objects' own tables, once.

#include <cstdint>

#include "wire/python_layout.h"

namespace llmprof::collect {

struct AddressRange {
  std::uintptr_t begin, end;
};

struct PythonRuntime {
  void* (*this_thread)();                // PyGILState_GetThisThreadState: reads a thread-specific key
  int (*line_of)(void* code, int byte);  // PyCode_Addr2Line: reads the code object, which never changes
  AddressRange code;                     // of the object that has the interpreter
  std::uintptr_t state;                  // _PyRuntime
  std::uintptr_t code_type, text_type;   // PyCode_Type, PyUnicode_Type
  std::uint64_t version;                 // PY_VERSION_HEX
  wire::PythonLayout layout;
};

enum class PythonFound : std::uint8_t { kNo, kReadable, kUnreadable };

// kUnreadable: `why` is set to what a report can say.
PythonFound find_python(PythonRuntime* runtime, const char** why);

}  // namespace llmprof::collect
