#pragma once
// Which time is recorded: one stretch, from a moment, a range or a step on, to a moment or the end of a step; or any
// number of them, as somebody switches. What overlaps a stretch is kept whole. Plain data and arithmetic, no clock.

#include <cstdint>

namespace llmprof::collect {

inline constexpr std::uint64_t kNever = ~0ull;

struct WindowPlan {
  std::uint64_t from_ns = 0;        // CLOCK_MONOTONIC_RAW, as all times: holds for every process of a tree
  std::uint64_t until_ns = kNever;  // not reached any more
  std::uint64_t lasts_ns = kNever;  // after the range that it waits for
  bool waits_for_range = false;     // the first one that begins at from_ns or later
  bool counts_steps = false;
  std::uint64_t first_step = kNever;  // kNever: from the beginning
  std::uint64_t end_step = kNever;    // the first that is outside again; kNever: to the end
  bool switched = false;              // nothing, until it is switched on
};

class Window {
 public:
  Window() = default;
  explicit Window(const WindowPlan& plan) : plan_(plan) {
    const bool waits = plan.switched || plan.waits_for_range || (plan.counts_steps && plan.first_step != kNever);
    begin_ns_ = waits ? kNever : plan.from_ns;
    end_ns_ = plan.until_ns;
  }

  bool is_everything() const { return !plan_.switched && begin_ns_ == 0 && end_ns_ == kNever && !watches(); }
  bool is_switched() const { return plan_.switched; }
  // Still waits for a range or a step: events must be shown to it before they are selected.
  bool watches() const {
    if (plan_.waits_for_range) return begin_ns_ == kNever;
    return plan_.counts_steps && (begin_ns_ == kNever || (plan_.end_step != kNever && end_ns_ == kNever));
  }
  bool waits_for_range() const { return plan_.waits_for_range && begin_ns_ == kNever; }
  bool counts_steps() const { return plan_.counts_steps; }

  // The range it may wait for.
  void range_began(std::uint64_t ts_ns) {
    if (!waits_for_range() || ts_ns < plan_.from_ns) return;
    begin_ns_ = ts_ns;
    if (plan_.lasts_ns < kNever - ts_ns) end_ns_ = ts_ns + plan_.lasts_ns;
  }
  // The number of the step.
  std::uint64_t step_began(std::uint64_t ts_ns) {
    if (steps_ == plan_.first_step) begin_ns_ = ts_ns;
    return steps_++;
  }
  void step_ended(std::uint64_t number, std::uint64_t ts_ns) {
    if (end_ns_ == kNever && plan_.end_step != kNever && number + 1 >= plan_.end_step) end_ns_ = ts_ns;
  }

  // Of a switched window: times never go back. True: another stretch begins.
  bool switch_at(std::uint64_t ts_ns, bool on) {
    const bool is_on = begin_ns_ != kNever && end_ns_ == kNever;
    if (on == is_on) return false;
    if (!on) {
      end_ns_ = ts_ns;
      return false;
    }
    if (begin_ns_ != kNever) before_[stretches_before_++ % kRemembered] = {begin_ns_, end_ns_};
    begin_ns_ = ts_ns;
    end_ns_ = kNever;
    return true;
  }

  // Of the stretch that is the last so far.
  std::uint64_t begin_ns() const { return begin_ns_; }  // kNever: not known yet
  std::uint64_t end_ns() const { return end_ns_; }

  bool holds(std::uint64_t ts_ns) const { return overlaps(ts_ns, ts_ns); }
  bool overlaps(std::uint64_t begin_ns, std::uint64_t end_ns) const {
    if (Stretch{begin_ns_, end_ns_}.overlaps(begin_ns, end_ns)) return true;
    const std::uint32_t count = stretches_before_ < kRemembered ? stretches_before_ : kRemembered;
    for (std::uint32_t i = 0; i < count; ++i) {
      if (before_[i].overlaps(begin_ns, end_ns)) return true;
    }
    return false;
  }

 private:
  // Records come late by moments, not by many switches: what is older than these was decided before.
  static constexpr std::uint32_t kRemembered = 32;
  struct Stretch {
    std::uint64_t begin_ns, end_ns;
    bool overlaps(std::uint64_t begin, std::uint64_t end) const { return begin < end_ns && end >= begin_ns; }
  };

  WindowPlan plan_{};
  std::uint64_t begin_ns_ = 0;
  std::uint64_t end_ns_ = kNever;
  std::uint64_t steps_ = 0;  // begun so far
  std::uint32_t stretches_before_ = 0;
  Stretch before_[kRemembered] = {};
};

}  // namespace llmprof::collect
