#pragma once
// How often warps were seen where, for which reason: sums that are taken out from time to time. Memory is given; zero
// bytes are an empty table. Not for several threads at once.

#include <cstddef>
#include <cstdint>

#include "wire/format.h"

namespace llmprof::collect::counters {

struct StallKey {
  std::uint64_t cubin;
  std::uint64_t pc_offset;
  wire::StringId function;
  std::uint16_t reason;
  bool issued;
  bool operator==(const StallKey&) const = default;
};

class StallTable {
 public:
  struct Entry {
    StallKey key;
    bool used;
    std::uint64_t samples;  // not yet taken
    std::uint64_t total;    // ever
  };
  static constexpr std::size_t kEntries = 1u << 18;
  static constexpr std::size_t kMostUsed = kEntries / 8 * 7;  // fuller ones are slow to search
  static constexpr std::size_t kBytes = kEntries * sizeof(Entry);

  void use(void* memory) { entries_ = static_cast<Entry*>(memory); }

  // False: the place is new and there is no room.
  bool add(const StallKey& key, std::uint64_t samples);

  // Hands up to `most` sums over and sets them back, going on where the last call stopped. `take` answers whether it
  // took the entry; when not, the walk ends and the sum stays. Whether everything was handed over.
  template <class Take>
  bool take(std::size_t most, Take take) {
    for (std::size_t i = 0; i < kEntries && pending_ > 0; ++i, at_ = (at_ + 1) % kEntries) {
      Entry& entry = entries_[at_];
      if (entry.samples == 0) continue;
      if (most-- == 0 || !take(entry)) return false;
      entry.samples = 0;
      --pending_;
    }
    return true;
  }

  std::size_t used() const { return used_; }
  std::size_t pending() const { return pending_; }  // entries with samples

 private:
  Entry* entries_ = nullptr;
  std::size_t used_ = 0, pending_ = 0, at_ = 0;
};

}  // namespace llmprof::collect::counters
