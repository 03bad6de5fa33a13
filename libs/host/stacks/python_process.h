#pragma once
// The Python side of one process: CPython 3.11 or 3.12, read from outside. Nothing is stopped, so every pointer is
// checked, and a frame counts only if the native stack of the same sample bears it out.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "host/stacks/address_space.h"
#include "host/stacks/python_code.h"
#include "host/stacks/python_layout.h"
#include "host/stacks/remote_memory.h"
#include "host/stacks/unwinder.h"

namespace llmprof::host {

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

  // To be called before the questions about one sample: what was read for the last one is stale.
  void begin_sample() { memory_.forget(); }

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
  struct FrameWords {
    std::uint64_t code, previous, instruction;
    bool entry, shim;  // shim: a frame of the C stack, without code of its own
  };
  // From the sample's copy of the stack where that has it (3.12 keeps the first frame of each call of the loop there).
  std::optional<FrameWords> read_frame(std::uint64_t address, const StackMemory* stack);
  std::optional<std::uint64_t> current_frame(const NativeFrame& frame, const StackMemory& stack);
  bool was_executing(const PythonCode& code, const NativeFrame& frame, bool innermost, const StackMemory& stack);
  bool still_waits(const NativeFrame& frame, const StackMemory& stack);
  Answer innermost_of(const NativeFrame& frame, bool innermost, std::vector<PythonFrame>& out);
  bool learn_distance(const std::vector<NativeFrame>& frames, const StackMemory& stack);
  // The frames of one call of the loop, or of all where there is no sample.
  bool walk(std::uint64_t address, const StackMemory* stack, std::vector<PythonFrame>& out);
  std::vector<std::uint64_t> threads();

  const PythonLayout* layout_ = nullptr;
  std::string why_;
  std::uint64_t runtime_ = 0;
  RemoteMemory memory_;
  std::unique_ptr<PythonCodes> codes_;
  // From the CFA of the interpreter loop down to its _PyCFrame: fixed by the compiler, found out once. 0: not yet.
  std::uint64_t distance_ = 0;
  // Where the next instruction was found, in frames that call something and in innermost ones.
  struct Evidence {
    std::uint64_t in_registers = 0, on_stack = 0;
  };
  std::array<Evidence, 2> evidence_;
};

}  // namespace llmprof::host
