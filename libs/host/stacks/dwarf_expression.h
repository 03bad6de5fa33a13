#pragma once
// The little stack machine of DWARF, as far as unwind rules use it (PLT entries, signal frames).

#include <cstdint>
#include <optional>
#include <span>

#include "host/stacks/registers.h"
#include "host/stacks/stack_memory.h"

namespace llmprof::host {

// `first` is on the stack at the beginning, if given. Nothing if the program is malformed, reads unknown registers or
// memory that was not copied, or runs too long.
std::optional<std::uint64_t> evaluate(std::span<const std::uint8_t> program, std::optional<std::uint64_t> first,
                                      const Registers& registers, const StackMemory& stack);

}  // namespace llmprof::host
