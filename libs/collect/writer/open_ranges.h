#pragma once
// The ranges that are open now, in bounded memory. A log that begins in their middle (a window, a segment) can then say
// when they began. Used by the writer alone; all zero bytes is the empty state.

#include <cstdint>

#include "wire/format.h"

namespace llmprof::collect {

inline constexpr std::uint32_t kMaxOpenRanges = 16384;
inline constexpr std::uint32_t kMaxRangeThreads = 16384;
inline constexpr std::uint32_t kStartBuckets = 4096;

inline std::uint32_t bucket_of(std::uint64_t correlation) {
  return static_cast<std::uint32_t>((correlation * 0x9E3779B97F4A7C15u) >> 52);  // the upper 12 bits: kStartBuckets
}
static_assert(kStartBuckets == 1u << 12);

inline constexpr std::uint32_t kEarlyDrains = 2;  // a start is drained at most one round after its end

struct OpenRange {
  wire::RangeRecord record;  // its push or start
  std::uint32_t next;        // push: the range below it on its thread; start: the next of its bucket; index + 1
  std::uint32_t above;       // scratch of in_order()
  std::uint32_t slot;        // of its thread
  std::uint32_t thread;      // number of its thread
  std::uint32_t log;         // the log that holds it; 0: none does
  std::uint32_t ended_at;    // not 0: this is an end whose start has not come yet, seen in this drain (+ 1)
};
static_assert(sizeof(OpenRange) == 64);

class OpenRanges {
 public:
  // Null: there is no room. The range is then not known here, and neither will its end be.
  OpenRange* push(std::uint32_t slot, std::uint32_t thread, const wire::RangeRecord& event) {
    drop_deeper(slot, event, event.level - 1);
    OpenRange* range = take(slot, thread, event);
    if (range == nullptr) return nullptr;
    range->next = tops_[slot];
    tops_[slot] = link_of(range);
    return range;
  }

  // The range that this pop ends, taken out. False: it is not known.
  bool pop(std::uint32_t slot, const wire::RangeRecord& event, OpenRange* ended) {
    drop_deeper(slot, event, event.level);
    for (std::uint32_t* link = &tops_[slot]; OpenRange* range = at(*link); link = &range->next) {
      if (range->record.domain != event.domain) continue;
      if (range->record.level != event.level) return false;
      *ended = *range;
      *link = range->next;
      give_back(range);
      return true;
    }
    return false;
  }

  // Threads are drained one after the other, so an end may come before its start. It is then kept until the start
  // comes: start() returns null and the end in `early`.
  enum class End : std::uint8_t { kFound, kEarly, kUnknown };
  OpenRange* start(std::uint32_t slot, std::uint32_t thread, const wire::RangeRecord& event, OpenRange* early) {
    early->ended_at = 0;
    std::uint32_t* link = find_start(event.correlation);
    if (OpenRange* there = at(*link)) {
      if (there->ended_at == 0) return nullptr;  // two starts of one number
      *early = *there;
      *link = there->next;
      give_back(there);
      --early_ends_;
      return nullptr;
    }
    OpenRange* range = take(slot, thread, event);
    if (range != nullptr) *link = link_of(range);
    return range;
  }

  End end(std::uint32_t slot, std::uint32_t thread, const wire::RangeRecord& event, OpenRange* begun) {
    std::uint32_t* link = find_start(event.correlation);
    OpenRange* range = at(*link);
    if (range != nullptr && range->ended_at != 0) return End::kUnknown;  // two ends of one number
    if (range != nullptr) {
      *begun = *range;
      *link = range->next;
      give_back(range);
      return End::kFound;
    }
    OpenRange* early = take(slot, thread, event);
    if (early == nullptr) return End::kUnknown;
    early->ended_at = drain_ + 1;
    *link = link_of(early);
    ++early_ends_;
    return End::kEarly;
  }

  // All threads were drained once more. How many early ends were given up: their start was lost.
  std::uint32_t next_drain() {
    ++drain_;
    const std::uint32_t before = early_ends_;
    if (before == 0) return 0;
    for (std::uint32_t& bucket : starts_) {
      for (std::uint32_t* link = &bucket; OpenRange* range = at(*link);) {
        if (range->ended_at == 0 || drain_ + 1 - range->ended_at < kEarlyDrains) {
          link = &range->next;
          continue;
        }
        *link = range->next;
        give_back(range);
        --early_ends_;
      }
    }
    return before - early_ends_;
  }

  // The innermost range of a thread; null: none.
  OpenRange* top(std::uint32_t slot) { return at(tops_[slot]); }
  // The ranges of a thread, outermost first: call until null, each time with what came last (null at first).
  OpenRange* in_order(std::uint32_t slot, const OpenRange* last) {
    if (last != nullptr) return at(last->above);
    std::uint32_t above = 0;
    OpenRange* lowest = nullptr;
    for (OpenRange* range = top(slot); range != nullptr; range = at(range->next)) {
      range->above = above;
      above = link_of(range);
      lowest = range;
    }
    return lowest;
  }

  // All ranges that were started: the same.
  OpenRange* started(const OpenRange* last) {
    std::uint32_t bucket = 0;
    if (last != nullptr) {
      bucket = bucket_of(last->record.correlation) + 1;
      for (OpenRange* range = at(last->next); range != nullptr; range = at(range->next)) {
        if (range->ended_at == 0) return range;
      }
    }
    for (; bucket < kStartBuckets; ++bucket) {
      for (OpenRange* range = at(starts_[bucket]); range != nullptr; range = at(range->next)) {
        if (range->ended_at == 0) return range;
      }
    }
    return nullptr;
  }

  // Takes out what a thread left open.
  bool drop_top(std::uint32_t slot, OpenRange* dropped) {
    OpenRange* range = top(slot);
    if (range == nullptr) return false;
    *dropped = *range;
    tops_[slot] = range->next;
    give_back(range);
    return true;
  }

 private:
  OpenRange* at(std::uint32_t link) { return link == 0 ? nullptr : &ranges_[link - 1]; }
  std::uint32_t link_of(const OpenRange* range) { return static_cast<std::uint32_t>(range - ranges_) + 1; }
  OpenRange* take(std::uint32_t slot, std::uint32_t thread, const wire::RangeRecord& event) {
    OpenRange* range = at(free_);
    if (range != nullptr) {
      free_ = range->next;
    } else if (fresh_ < kMaxOpenRanges) {
      range = &ranges_[fresh_++];
    } else {
      return nullptr;
    }
    *range = {event, 0, 0, slot, thread, 0, 0};
    return range;
  }

  void give_back(OpenRange* range) {
    range->next = free_;
    free_ = link_of(range);
  }

  // Ranges of the domain deeper than this level are over, though their pops were lost.
  void drop_deeper(std::uint32_t slot, const wire::RangeRecord& event, int level) {
    if (event.level == wire::kNoLevel) return;
    std::uint32_t* link = &tops_[slot];
    while (OpenRange* range = at(*link)) {
      if (range->record.domain != event.domain) {
        link = &range->next;
        continue;
      }
      if (range->record.level == wire::kNoLevel || range->record.level <= level) return;
      *link = range->next;
      give_back(range);
    }
  }

  std::uint32_t* find_start(std::uint64_t correlation) {
    std::uint32_t* link = &starts_[bucket_of(correlation)];
    while (at(*link) != nullptr && at(*link)->record.correlation != correlation) link = &at(*link)->next;
    return link;
  }

  OpenRange ranges_[kMaxOpenRanges];
  std::uint32_t tops_[kMaxRangeThreads];  // by slot: index + 1
  std::uint32_t starts_[kStartBuckets];
  std::uint32_t free_;   // given back
  std::uint32_t fresh_;  // from here on never used
  std::uint32_t drain_;
  std::uint32_t early_ends_;
};

}  // namespace llmprof::collect
