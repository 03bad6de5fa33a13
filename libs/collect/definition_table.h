#pragma once
// Records that stand for themselves wherever they are used: kernel shapes, GEMM shapes, frames, stacks. Each once, by
// content; lock-free and never freed, as StringTable, and for the same reasons. A definition may use names and other
// definitions; the writer puts those into the log first.

#include <atomic>
#include <cstdint>

#include "wire/format.h"

namespace llmprof::collect {

class DefinitionTable {  // all zero bytes is an empty table
 public:
  static constexpr std::uint32_t kMaxDefinitions = 1u << 17;

  // The id of this content, entering it if it is new; 0 when the table is full. The record's id is ignored; all its
  // bytes count, so it must have been zeroed before it was filled.
  wire::DefinitionId intern(const wire::Record& record);

  bool valid(wire::DefinitionId id) const {
    return id != 0 && id < kMaxDefinitions && ready_[id].load(std::memory_order_acquire) != 0;
  }
  const wire::Record& record(wire::DefinitionId id) const { return records_[id]; }
  std::uint32_t& emitted(wire::DefinitionId id) { return emitted_[id]; }  // writer only: the log that holds it

 private:
  static constexpr std::uint32_t kSlots = kMaxDefinitions * 2;

  wire::DefinitionId enter(const wire::Record& record);

  std::atomic<std::uint32_t> used_;
  std::atomic<std::uint32_t> slots_[kSlots];  // open addressing; 0 is empty
  wire::Record records_[kMaxDefinitions];
  std::atomic<std::uint8_t> ready_[kMaxDefinitions];
  std::uint32_t emitted_[kMaxDefinitions];
};

// Interns into the process's table; full or off: 0, counted.
wire::DefinitionId define(const wire::Record& record);

}  // namespace llmprof::collect
