#include "collect/string_table.h"

#include <string.h>

#include "collect/stress_point.h"

namespace llmprof::collect {
namespace {

// Eight bytes at a time: multiply, fold. Never 0, which marks an id that was not given out.
std::uint64_t hash_of(const char* text, std::size_t length) {
  constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15u;  // 2^64 / golden ratio
  std::uint64_t hash = length * kOdd;
  while (length > 0) {
    std::uint64_t word = 0;
    const std::size_t part = length < 8 ? length : 8;
    memcpy(&word, text, part);
    hash = (hash ^ word) * kOdd;
    hash ^= hash >> 32;
    text += part;
    length -= part;
  }
  return hash | 1;
}

}  // namespace

bool StringTable::equals(wire::StringId id, std::uint64_t hash, const char* text, std::size_t length) const {
  const Name& name = names_[id];
  return name.hash.load(std::memory_order_relaxed) == hash && name.length == length &&
         memcmp(arena_ + name.offset, text, length) == 0;
}

wire::StringId StringTable::enter(std::uint64_t hash, const char* text, std::size_t length) {
  // Look before taking: once full, the counters must not run on and wrap.
  const auto bytes = static_cast<std::uint32_t>(length + 1);
  if (used_names_.load(std::memory_order_relaxed) >= kMaxNames - 1) return 0;
  if (used_bytes_.load(std::memory_order_relaxed) > kArenaBytes - bytes) return 0;
  const std::uint32_t id = used_names_.fetch_add(1, std::memory_order_relaxed) + 1;
  if (id >= kMaxNames) return 0;
  const std::uint32_t offset = used_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  if (offset > kArenaBytes - bytes) return 0;
  memcpy(arena_ + offset, text, length);
  arena_[offset + length] = '\0';
  names_[id].offset = offset;
  names_[id].length = static_cast<std::uint32_t>(length);
  stress_point();
  names_[id].hash.store(hash, std::memory_order_release);
  return id;
}

wire::StringId StringTable::intern(const char* text, std::size_t length) {
  const std::uint64_t hash = hash_of(text, length);
  wire::StringId mine = 0;
  for (std::uint32_t probe = 0; probe < kSlots; ++probe) {
    std::atomic<std::uint32_t>& slot = slots_[(hash + probe) % kSlots];
    std::uint32_t id = slot.load(std::memory_order_acquire);
    if (id == 0) {
      if (mine == 0) mine = enter(hash, text, length);
      if (mine == 0) return 0;
      // Losing the race to another name costs one unused id, nothing else.
      if (slot.compare_exchange_strong(id, mine, std::memory_order_acq_rel)) return mine;
    }
    if (equals(id, hash, text, length)) return id;
  }
  return 0;
}

}  // namespace llmprof::collect
