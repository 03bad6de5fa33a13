#pragma once
// Which kernels were asked for, remembered by the address of their name: other launches cost one look. And which
// patterns no launch has met: kernels that only ever run inside graphs cannot be counted one by one.

#include <atomic>
#include <cstdint>

#include "collect/cuda/counters/plan.h"

namespace llmprof::collect::counters {

class KernelVerdicts {
 public:
  // No pattern: all are. From any thread.
  bool is_asked_for(const List& patterns, const char* symbol) {
    const auto address = reinterpret_cast<std::uintptr_t>(symbol);
    std::atomic<std::uint64_t>& slot = slots_[(address ^ address >> 12) % kSlots];
    const std::uint64_t known = slot.load(std::memory_order_relaxed);
    if (known >> 2 == address && known != 0) return (known & 2) != 0;
    const bool asked = patterns.count == 0 || matches(patterns, symbol);
    slot.store(std::uint64_t{address} << 2 | (asked ? 2u : 0u) | 1u, std::memory_order_relaxed);
    return asked;
  }

  // A launch that could be counted. One thread at a time, as unseen() and say_unseen().
  void was_launched(const List& patterns, const char* symbol);
  // Names that no launch has met in any of their spellings: how many, and the first of them (null: none).
  struct Unseen {
    const char* first;
    std::size_t count;
  };
  Unseen unseen(const List& patterns) const;
  void say_unseen(const List& patterns) const;

 private:
  static constexpr std::size_t kSlots = 4096;
  std::atomic<std::uint64_t> slots_[kSlots]{};  // address << 2 | asked for << 1 | 1
  bool seen_[List::kMost]{};                    // by pattern
};

}  // namespace llmprof::collect::counters
