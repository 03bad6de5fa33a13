#pragma once
// How to get from a frame of the C stack to its caller, worked out from the unwind tables that every object of the
// process carries for its exceptions. Only what compilers make of ordinary functions: everything else ends the stack.

#include <cstdint>

namespace llmprof::collect {

enum class CfaKind : std::uint8_t {
  kUnknown,  // no table for this address, or one that is not understood
  kOutermost,
  kStackPointer,  // CFA = rsp + offset
  kFramePointer,  // CFA = rbp + offset
  kAtFrame,       // CFA = the word at rbp + offset: a function that aligned its stack
};

enum class FrameKind : std::uint8_t {  // the caller's rbp
  kKept,                               // is still in rbp
  kAtCfa,                              // stands at CFA + offset
  kAtFrame,                            // stands where rbp points
  kLost,
};

// The caller's rsp is the CFA, its address stands just below.
struct UnwindRule {
  CfaKind cfa;
  FrameKind frame;
  std::int32_t cfa_offset, frame_offset;
};

// The rule at `address`, which lies in the object that has this .eh_frame_hdr.
UnwindRule unwind_rule(const std::uint8_t* header, std::uintptr_t address);

}  // namespace llmprof::collect
