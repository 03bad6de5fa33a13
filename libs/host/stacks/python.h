#pragma once
// Python frames of another process: its code objects, and the frames of a sample.

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "host/stacks/address_space.h"
#include "host/stacks/remote_memory.h"
#include "host/stacks/unwinder.h"
#include "wire/python_frames.h"

namespace llmprof::host {

// Code objects of a Python process: the name and file of a function and the line of an instruction. Read once each.
struct PythonCode {
  std::string name, file;     // qualified name
  std::uint64_t address = 0;  // of the object
  std::uint64_t first_instruction = 0, end_instruction = 0;
  wire::PythonCodeParts parts{};  // tells a new code object at the same address from this one
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
  PythonCodes(const wire::PythonLayout& layout, RemoteMemory& memory) : layout_(layout), memory_(memory) {}

  // nullptr if there is no code object at this address. Valid until the next call.
  const PythonCode* at(std::uint64_t address);
  // The code object seen so far in whose instructions an address lies; nullptr if none. May have been freed since.
  const PythonCode* containing(std::uint64_t instruction) const;
  std::string text(std::uint64_t object);  // of a str object

 private:
  bool is_code(std::uint64_t type);
  bool read(std::uint64_t address, PythonCode& code);

  const wire::PythonLayout& layout_;
  RemoteMemory& memory_;
  std::uint64_t code_type_ = 0;                // address of the type named "code", once seen
  std::map<std::uint64_t, PythonCode> codes_;  // by address
};

// The Python side of one process: CPython 3.11 or 3.12, read from outside. Nothing is stopped, so every pointer is
// checked, and a frame counts only if the native stack of the same sample bears it out.
struct PythonFrame {
  std::string function, file;
  std::uint32_t line = 0;
};

class PythonProcess {
 public:
  // `runtime` is a place in the module that holds the interpreter.
  PythonProcess(pid_t pid, const AddressSpace::Place& runtime);

  // Why frames cannot be read at all; "" if they can.
  const std::string& why() const { return why_; }

  // To be called before the questions about one sample, as soon after it as can be: what was read for the last one is
  // stale.
  void begin_sample() {
    memory_.refresh();
    asked_ = false;
  }

  enum class Answer {
    kFrames,
    kNone,       // the loop is entered or left: it executes nothing
    kInnermost,  // only the innermost frame is certain: the program has moved on
    kMovedOn,    // nothing is certain any more
  };
  // Adds the frames, innermost first, that the call of the interpreter loop in `frames[index]` was executing when the
  // sample was taken.
  Answer frames_of(const std::vector<NativeFrame>& frames, std::size_t index, const StackMemory& stack,
                   std::vector<PythonFrame>& out);

  // The whole stack of a thread as it is now. Only good for threads that wait.
  std::vector<PythonFrame> stack_of_thread(pid_t tid);

 private:
  // From the sample's copy of the stack where that has it (3.12 keeps the first frame of each call of the loop there).
  bool read_frame(std::uint64_t address, const StackMemory* stack, wire::PythonFrame* frame);
  std::optional<std::uint64_t> current_frame(const NativeFrame& frame, const StackMemory& stack);
  bool was_executing(const PythonCode& code, const NativeFrame& frame, bool innermost, const StackMemory& stack);
  bool unchanged(const NativeFrame& frame, const StackMemory& stack);
  Answer innermost_of(const NativeFrame& frame, bool innermost, std::vector<PythonFrame>& out);
  bool learn_distance(const std::vector<NativeFrame>& frames, const StackMemory& stack);
  // The frames of one call of the loop, or of all where there is no sample.
  bool walk(std::uint64_t address, const StackMemory* stack, std::vector<PythonFrame>& out);
  std::vector<std::uint64_t> threads();

  const wire::PythonLayout* layout_ = nullptr;
  std::string why_;
  std::uint64_t runtime_ = 0;
  RemoteMemory memory_;
  std::unique_ptr<PythonCodes> codes_;
  // From the CFA of the interpreter loop down to its _PyCFrame: fixed by the compiler, found out once. 0: not yet.
  std::uint64_t distance_ = 0;
  std::uint64_t candidate_ = 0;
  int agreed_ = 0;      // samples in a row that gave the candidate
  bool asked_ = false;  // this sample for it
  // What was read for the question being answered.
  struct WalkedFrame {
    std::uint64_t address, code, previous;
  };
  std::vector<WalkedFrame> walked_;
  bool proven_ = false;  // registers of the sample point into the code
  // Where loops that were executing kept their next instruction.
  std::uint64_t found_in_registers_ = 0, found_on_stack_ = 0;
};

}  // namespace llmprof::host
