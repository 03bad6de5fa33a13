#pragma once
// Which stretch of time is recorded: from a moment, a range or a step on, to a moment or the end of a step. What
// overlaps the window is kept whole. Plain data and arithmetic, no clock.

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
};

class Window {
 public:
  Window() = default;
  explicit Window(const WindowPlan& plan) : plan_(plan) {
    const bool waits = plan.waits_for_range || (plan.counts_steps && plan.first_step != kNever);
    begin_ns_ = waits ? kNever : plan.from_ns;
    end_ns_ = plan.until_ns;
  }

  bool is_everything() const { return begin_ns_ == 0 && end_ns_ == kNever && !watches(); }
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

  std::uint64_t begin_ns() const { return begin_ns_; }  // kNever: not known yet
  std::uint64_t end_ns() const { return end_ns_; }
  bool holds(std::uint64_t ts_ns) const { return ts_ns >= begin_ns_ && ts_ns < end_ns_; }
  bool overlaps(std::uint64_t begin_ns, std::uint64_t end_ns) const {
    return begin_ns < end_ns_ && end_ns >= begin_ns_;
  }

 private:
  WindowPlan plan_{};
  std::uint64_t begin_ns_ = 0;
  std::uint64_t end_ns_ = kNever;
  std::uint64_t steps_ = 0;  // begun so far
};

}  // namespace llmprof::collect
