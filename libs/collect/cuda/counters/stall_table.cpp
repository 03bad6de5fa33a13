#include "collect/cuda/counters/stall_table.h"

namespace llmprof::collect::counters {
namespace {

// Offsets are multiples of 16 and reasons few: all bits must count.
std::uint64_t mix(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

std::uint64_t hash(const StallKey& key) {
  const std::uint64_t reason = std::uint64_t{key.reason} << 1 | (key.issued ? 1 : 0);
  return mix(mix(key.cubin ^ key.pc_offset << 20) ^ (std::uint64_t{key.function} << 24 | reason));
}

}  // namespace

bool StallTable::add(const StallKey& key, std::uint64_t samples) {
  if (samples == 0) return true;
  for (std::size_t at = hash(key) % kEntries;; at = (at + 1) % kEntries) {
    Entry& entry = entries_[at];
    if (!entry.used) {
      if (used_ == kMostUsed) return false;
      entry.key = key;
      entry.used = true;
      ++used_;
    } else if (entry.key != key) {
      continue;
    }
    if (entry.samples == 0) ++pending_;
    entry.samples += samples;
    entry.total += samples;
    return true;
  }
}

}  // namespace llmprof::collect::counters
