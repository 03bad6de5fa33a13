#pragma once
// How to get from one frame to its caller at one instruction: a row of the DWARF unwind table, worked out from a CIE
// and an FDE. Pure functions over bytes that nobody vouches for.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "host/stacks/registers.h"

namespace llmprof::host {

enum class RuleKind : std::uint8_t {
  kSame,          // the caller's value is still in the register
  kUndefined,     // lost
  kAtCfa,         // in memory at CFA + offset
  kCfaPlus,       // CFA + offset itself
  kRegister,      // in another register
  kAtExpression,  // in memory at the value of an expression
  kExpression,    // the value of an expression
};

struct Rule {
  RuleKind kind = RuleKind::kSame;
  std::uint8_t number = 0;  // register
  std::uint16_t bytes = 0;  // of the expression
  std::int32_t offset = 0;  // from the CFA; of an expression: where it begins in UnwindRow::programs
};

struct UnwindRow {
  std::uint64_t function_begin = 0, function_end = 0;  // what the FDE covers
  Rule cfa;                                            // kRegister with offset, or kExpression
  std::array<Rule, kRegisters> rules;
  std::vector<std::uint8_t> programs;  // the expressions, one after the other
  bool signal_frame = false;           // the frame was interrupted, not called

  bool outermost() const { return rules[kRip].kind == RuleKind::kUndefined; }
};

// An entry of .eh_frame without its length field, and the address of its first byte after that field.
struct FrameEntry {
  std::uint64_t address = 0;
  std::span<const std::uint8_t> bytes;
};

// The row of `pc`; nothing if the FDE does not cover it or cannot be understood.
std::optional<UnwindRow> unwind_row(const FrameEntry& cie, const FrameEntry& fde, std::uint64_t pc);

}  // namespace llmprof::host
