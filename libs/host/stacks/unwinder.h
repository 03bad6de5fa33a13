#pragma once
// From the registers and the copied stack of a sample to its chain of native frames.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "host/stacks/address_space.h"
#include "host/stacks/remote_memory.h"

namespace llmprof::host {

inline constexpr std::size_t kMaxFrames = 256;

struct NativeFrame {
  std::uint64_t pc = 0;       // the instruction, of callers an address inside their call
  AddressSpace::Place place;  // of pc; no module: unknown code
  std::uint64_t cfa = 0;      // end of the frame's stack, 0 if not known
  Registers registers;        // as they were in this frame
};

struct NativeStack {
  std::vector<NativeFrame> frames;  // innermost first
  bool truncated = false;           // the outermost frame was not reached
};

// Frames are found by the unwind tables of the modules. Where those fail (assembler without or with wrong tables), the
// nearest return address on the stack that can be one is taken, or the frame pointer. `out` is overwritten.
void unwind(const Registers& start, const StackMemory& stack, AddressSpace& space, std::uint64_t now_ns,
            NativeStack& out);

// The little stack machine of DWARF, as far as unwind rules use it (PLT entries, signal frames).

// `first` is on the stack at the beginning, if given. Nothing if the program is malformed, reads unknown registers or
// memory that was not copied, or runs too long.
std::optional<std::uint64_t> evaluate(std::span<const std::uint8_t> program, std::optional<std::uint64_t> first,
                                      const Registers& registers, const StackMemory& stack);

}  // namespace llmprof::host
