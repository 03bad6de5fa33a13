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
  struct FrameWords {
    std::uint64_t code, previous, instruction;
    bool entry, shim;  // shim: a frame of the C stack, without code of its own
  };
  // From the sample's copy of the stack where that has it (3.12 keeps the first frame of each call of the loop there).
  std::optional<FrameWords> read_frame(std::uint64_t address, const StackMemory* stack);
  std::optional<std::uint64_t> current_frame(const NativeFrame& frame, const StackMemory& stack);
  bool was_executing(const PythonCode& code, const NativeFrame& frame, bool innermost, const StackMemory& stack);
  bool unchanged(const NativeFrame& frame, const StackMemory& stack);
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
  std::uint64_t candidate_ = 0;
  int agreed_ = 0;      // samples in a row that gave the candidate
  bool asked_ = false;  // this sample for it
  // What was read for the question being answered.
  static constexpr std::size_t kFrameBytes = 72;
  struct WalkedFrame {
    std::uint64_t address;
    std::array<std::uint8_t, kFrameBytes> bytes;
  };
  std::vector<WalkedFrame> walked_;
  bool proven_ = false;  // registers of the sample point into the code
  // Where loops that were executing kept their next instruction.
  std::uint64_t found_in_registers_ = 0, found_on_stack_ = 0;
};

}  // namespace llmprof::host
