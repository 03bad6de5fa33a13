#include "collect/writer/open_ranges.h"

namespace llmprof::collect {
namespace {

std::uint32_t bucket_of(std::uint64_t correlation) {
  return static_cast<std::uint32_t>((correlation * 0x9E3779B97F4A7C15u) >> 52);  // the upper 12 bits: kStartBuckets
}
static_assert(kStartBuckets == 1u << 12);

constexpr std::uint32_t kEarlyDrains = 2;  // a start is drained at most one round after its end

}  // namespace

OpenRange* OpenRanges::take(std::uint32_t slot, std::uint32_t thread, const wire::RangeRecord& event) {
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

void OpenRanges::give_back(OpenRange* range) {
  range->next = free_;
  free_ = link_of(range);
}

// Ranges of the domain deeper than this level are over, though their pops were lost.
void OpenRanges::drop_deeper(std::uint32_t slot, const wire::RangeRecord& event, int level) {
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

OpenRange* OpenRanges::push(std::uint32_t slot, std::uint32_t thread, const wire::RangeRecord& event) {
  drop_deeper(slot, event, event.level - 1);
  OpenRange* range = take(slot, thread, event);
  if (range == nullptr) return nullptr;
  range->next = tops_[slot];
  tops_[slot] = link_of(range);
  return range;
}

bool OpenRanges::pop(std::uint32_t slot, const wire::RangeRecord& event, OpenRange* ended) {
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

std::uint32_t* OpenRanges::find_start(std::uint64_t correlation) {
  std::uint32_t* link = &starts_[bucket_of(correlation)];
  while (at(*link) != nullptr && at(*link)->record.correlation != correlation) link = &at(*link)->next;
  return link;
}

OpenRange* OpenRanges::start(std::uint32_t slot, std::uint32_t thread, const wire::RangeRecord& event,
                             OpenRange* early) {
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

OpenRanges::End OpenRanges::end(std::uint32_t slot, std::uint32_t thread, const wire::RangeRecord& event,
                                OpenRange* begun) {
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

std::uint32_t OpenRanges::next_drain() {
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

OpenRange* OpenRanges::in_order(std::uint32_t slot, const OpenRange* last) {
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

OpenRange* OpenRanges::started(const OpenRange* last) {
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

bool OpenRanges::drop_top(std::uint32_t slot, OpenRange* dropped) {
  OpenRange* range = top(slot);
  if (range == nullptr) return false;
  *dropped = *range;
  tops_[slot] = range->next;
  give_back(range);
  return true;
}

}  // namespace llmprof::collect
