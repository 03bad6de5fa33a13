#pragma once
// The ranges that are open now, in bounded memory. A log that begins in their middle (a window, a segment) can then say
// when they began. Used by the writer alone; all zero bytes is the empty state.

#include <cstdint>

#include "wire/format.h"

namespace llmprof::collect {

inline constexpr std::uint32_t kMaxOpenRanges = 16384;
inline constexpr std::uint32_t kMaxRangeThreads = 16384;
inline constexpr std::uint32_t kStartBuckets = 4096;

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
  OpenRange* push(std::uint32_t slot, std::uint32_t thread, const wire::RangeRecord& event);
  // The range that this pop ends, taken out. False: it is not known.
  bool pop(std::uint32_t slot, const wire::RangeRecord& event, OpenRange* ended);

  // Threads are drained one after the other, so an end may come before its start. It is then kept until the start
  // comes: start() returns null and the end in `early`.
  enum class End : std::uint8_t { kFound, kEarly, kUnknown };
  OpenRange* start(std::uint32_t slot, std::uint32_t thread, const wire::RangeRecord& event, OpenRange* early);
  End end(std::uint32_t slot, std::uint32_t thread, const wire::RangeRecord& event, OpenRange* begun);

  // All threads were drained once more. How many early ends were given up: their start was lost.
  std::uint32_t next_drain();

  // The innermost range of a thread; null: none.
  OpenRange* top(std::uint32_t slot) { return at(tops_[slot]); }
  // The ranges of a thread, outermost first: call until null, each time with what came last (null at first).
  OpenRange* in_order(std::uint32_t slot, const OpenRange* last);
  // All ranges that were started: the same.
  OpenRange* started(const OpenRange* last);

  // Takes out what a thread left open.
  bool drop_top(std::uint32_t slot, OpenRange* dropped);

 private:
  OpenRange* at(std::uint32_t link) { return link == 0 ? nullptr : &ranges_[link - 1]; }
  std::uint32_t link_of(const OpenRange* range) { return static_cast<std::uint32_t>(range - ranges_) + 1; }
  OpenRange* take(std::uint32_t slot, std::uint32_t thread, const wire::RangeRecord& event);
  void give_back(OpenRange* range);
  void drop_deeper(std::uint32_t slot, const wire::RangeRecord& event, int level);
  std::uint32_t* find_start(std::uint64_t correlation);

  OpenRange ranges_[kMaxOpenRanges];
  std::uint32_t tops_[kMaxRangeThreads];  // by slot: index + 1
  std::uint32_t starts_[kStartBuckets];
  std::uint32_t free_;   // given back
  std::uint32_t fresh_;  // from here on never used
  std::uint32_t drain_;
  std::uint32_t early_ends_;
};

}  // namespace llmprof::collect
