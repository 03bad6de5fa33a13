#include "host/stacks/python_layout.h"

namespace llmprof::host {
namespace {

constexpr PythonLayout k311{
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
    .code_first_line = 72,
    .code_file = 112,
    .code_name = 128,
    .code_lines = 136,
    .code_instructions = 184,
    .text_of_ascii = 48,
    .text_of_others = 72,
};

constexpr PythonLayout k312{
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
    .code_first_line = 68,
    .code_file = 112,
    .code_name = 128,
    .code_lines = 136,
    .code_instructions = 192,
    .text_of_ascii = 40,
    .text_of_others = 56,
};

}  // namespace

const PythonLayout* python_layout(std::uint64_t version) {
  switch (version >> 16) {
    case 0x030b:
      return &k311;
    case 0x030c:
      return &k312;
    default:
      return nullptr;
  }
}

}  // namespace llmprof::host
