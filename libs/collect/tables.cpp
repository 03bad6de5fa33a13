#include "collect/tables.h"

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

namespace {

// The id is the first member of every definition.
constexpr std::size_t kIdOffset = offsetof(wire::Record, frame.id);
static_assert(kIdOffset == offsetof(wire::Record, stack.id) && kIdOffset == offsetof(wire::Record, kernel_shape.id) &&
              kIdOffset == offsetof(wire::Record, gemm_shape.id));

wire::Record without_id(const wire::Record& record) {
  wire::Record copy;
  memcpy(static_cast<void*>(&copy), &record, sizeof(copy));
  memset(reinterpret_cast<unsigned char*>(&copy) + kIdOffset, 0, sizeof(wire::DefinitionId));
  return copy;
}

std::uint64_t hash_of(const wire::Record& record) {
  constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15u;  // 2^64 / golden ratio
  std::uint64_t words[sizeof(wire::Record) / 8];
  memcpy(words, &record, sizeof(words));
  std::uint64_t hash = kOdd;
  for (const std::uint64_t word : words) {
    hash = (hash ^ word) * kOdd;
    hash ^= hash >> 32;
  }
  return hash;
}

bool same(const wire::Record& known, const wire::Record& record) {
  const auto* a = reinterpret_cast<const unsigned char*>(&known);
  const auto* b = reinterpret_cast<const unsigned char*>(&record);
  constexpr std::size_t kBehind = kIdOffset + sizeof(wire::DefinitionId);
  return memcmp(a, b, kIdOffset) == 0 && memcmp(a + kBehind, b + kBehind, sizeof(wire::Record) - kBehind) == 0;
}

}  // namespace

wire::DefinitionId DefinitionTable::enter(const wire::Record& record) {
  if (used_.load(std::memory_order_relaxed) >= kMaxDefinitions - 1) return 0;
  const wire::DefinitionId id = used_.fetch_add(1, std::memory_order_relaxed) + 1;
  if (id >= kMaxDefinitions) return 0;
  memcpy(static_cast<void*>(&records_[id]), &record, sizeof(record));
  memcpy(reinterpret_cast<unsigned char*>(&records_[id]) + kIdOffset, &id, sizeof(id));
  ready_[id].store(1, std::memory_order_release);
  return id;
}

wire::DefinitionId DefinitionTable::intern(const wire::Record& given) {
  const wire::Record record = without_id(given);
  const std::uint64_t hash = hash_of(record);
  wire::DefinitionId mine = 0;
  for (std::uint32_t probe = 0; probe < kSlots; ++probe) {
    std::atomic<std::uint32_t>& slot = slots_[(hash + probe) % kSlots];
    wire::DefinitionId id = slot.load(std::memory_order_acquire);
    if (id == 0) {
      if (mine == 0) mine = enter(record);
      if (mine == 0) return 0;
      // Losing the race to another definition costs one unused id, nothing else.
      if (slot.compare_exchange_strong(id, mine, std::memory_order_acq_rel)) return mine;
    }
    if (same(records_[id], record)) return id;
  }
  return 0;
}

}  // namespace llmprof::collect
