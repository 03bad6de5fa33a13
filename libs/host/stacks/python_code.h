#pragma once
// Code objects of a Python process: the name and file of a function and the line of an instruction. Read once each.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "host/stacks/python_layout.h"
#include "host/stacks/remote_memory.h"

namespace llmprof::host {

struct PythonCode {
  std::string name, file;     // qualified name
  std::uint64_t address = 0;  // of the object
  std::uint64_t first_instruction = 0, end_instruction = 0;
  // What tells a new code object at the same address from this one.
  std::uint64_t name_object = 0, file_object = 0, lines_object = 0;
  std::int32_t first_line = 0;
  std::vector<std::uint8_t> lines;

  bool contains(std::uint64_t instruction) const {
    return instruction >= first_instruction && instruction < end_instruction;
  }
  std::uint32_t line_of(std::uint64_t instruction) const;
};

// The line of a code unit in a location table of CPython 3.11 and later; `first_line` where it does not say.
std::int32_t line_in_table(const std::vector<std::uint8_t>& table, std::int32_t first_line, std::uint64_t unit);

class PythonCodes {
 public:
  PythonCodes(const PythonLayout& layout, RemoteMemory& memory) : layout_(layout), memory_(memory) {}

  // nullptr if there is no code object at this address. Valid until the next call.
  const PythonCode* at(std::uint64_t address);
  // The code object seen so far in whose instructions an address lies; nullptr if none. May have been freed since.
  const PythonCode* containing(std::uint64_t instruction) const;
  std::string text(std::uint64_t object);  // of a str object

 private:
  bool is_code(std::uint64_t type);
  std::optional<PythonCode> read(std::uint64_t address);

  const PythonLayout& layout_;
  RemoteMemory& memory_;
  std::uint64_t code_type_ = 0;                // address of the type named "code", once seen
  std::map<std::uint64_t, PythonCode> codes_;  // by address
};

}  // namespace llmprof::host
