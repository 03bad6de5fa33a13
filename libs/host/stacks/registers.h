#pragma once
// The registers of x86-64 by their DWARF numbers; 16 is the return address, of the innermost frame the instruction.

#include <array>
#include <cstdint>
#include <optional>

namespace llmprof::host {

inline constexpr std::size_t kRegisters = 17;
inline constexpr std::uint8_t kRbp = 6, kRsp = 7, kRip = 16;

struct Registers {
  std::array<std::uint64_t, kRegisters> value{};
  std::uint32_t known = 0;  // one bit each

  bool has(std::size_t number) const { return number < kRegisters && (known >> number & 1) != 0; }
  std::optional<std::uint64_t> get(std::size_t number) const {
    if (!has(number)) return std::nullopt;
    return value[number];
  }
  void set(std::size_t number, std::uint64_t content) {
    value[number] = content;
    known |= 1u << number;
  }
  void forget(std::size_t number) { known &= ~(1u << number); }
};

}  // namespace llmprof::host
