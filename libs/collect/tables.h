#pragma once
// The two tables of a process that hand out ids: names (StringTable) and records by content (DefinitionTable).

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "wire/format.h"

namespace llmprof::collect {

// Every name of a process, once. Lock-free: a name is complete before its slot is published, so a fork or a signal at
// any instruction leaves the table good, and a forked child goes on using the ids its parent handed out.
// Ids are never freed. When full, names become "<other>" (kOtherName), which is counted by the caller.

inline constexpr wire::StringId kOtherName = 1;

class StringTable {  // all zero bytes is an empty table
 public:
  static constexpr std::uint32_t kMaxNames = 1u << 16;
  static constexpr std::uint32_t kArenaBytes = 12u << 20;

  struct Name {
    std::uint32_t offset;  // in the arena; the bytes are followed by a '\0'
    std::uint32_t length;
    std::atomic<std::uint64_t> hash;  // written last; 0: not yet entered
    std::uint32_t emitted;            // writer only: generation whose log holds the definition
  };

  // The id of these bytes, entering them if they are new; 0 when the table is full. `length` <= kMaxNameBytes.
  wire::StringId intern(const char* text, std::size_t length);

  Name& name(wire::StringId id) { return names_[id]; }
  const char* text(wire::StringId id) const { return arena_ + names_[id].offset; }
  // Of any number, also one that was not handed out or is being entered just now. True: name() and text() are complete.
  bool valid(wire::StringId id) const { return id < kMaxNames && names_[id].hash.load(std::memory_order_acquire) != 0; }

 private:
  static constexpr std::uint32_t kSlots = kMaxNames * 2;

  bool equals(wire::StringId id, std::uint64_t hash, const char* text, std::size_t length) const;
  wire::StringId enter(std::uint64_t hash, const char* text, std::size_t length);

  std::atomic<std::uint32_t> used_names_;
  std::atomic<std::uint32_t> used_bytes_;
  std::atomic<std::uint32_t> slots_[kSlots];  // open addressing; 0 is empty
  Name names_[kMaxNames];
  char arena_[kArenaBytes];
};

// Records that stand for themselves wherever they are used: kernel shapes, GEMM shapes, frames, stacks. Each once, by
// content; lock-free and never freed, as StringTable, and for the same reasons. A definition may use names and other
// definitions; the writer puts those into the log first.
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

}  // namespace llmprof::collect
