#pragma once
// How often something is done: at a wanted period, or as seldom as its CPU time demands.

#include <algorithm>
#include <cstdint>
#include <utility>

#include "wire/clock.h"

namespace llmprof::host {

class Pace {
 public:
  // `share`: of one core, at most; but never more seldom than every `longest_ns`.
  Pace(std::uint64_t period_ns, double share, std::uint64_t longest_ns = UINT64_MAX)
      : wanted_ns_(period_ns), share_(share), longest_ns_(longest_ns) {}

  void set_share(double share) { share_ = share; }
  double used_share() const { return static_cast<double>(cost_ns_) / static_cast<double>(period_ns()); }  // of one core
  bool is_due(std::uint64_t now_ns) const { return now_ns >= next_ns_; }
  void due_now() { next_ns_ = 0; }
  std::uint64_t next_ns() const { return next_ns_; }
  std::uint64_t period_ns() const {
    const auto affordable_ns = static_cast<std::uint64_t>(static_cast<double>(cost_ns_) / share_);
    return std::max(wanted_ns_, std::min(affordable_ns, longest_ns_));
  }

  // Does it now and plans the next time by what it took.
  template <class Work>
  void measure(std::uint64_t now_ns, Work&& work) {
    const std::uint64_t begin = wire::read_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    std::forward<Work>(work)();
    took(now_ns, wire::read_clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin);
  }
  void took(std::uint64_t now_ns, std::uint64_t cpu_ns) {
    cost_ns_ = cost_ns_ == 0 ? cpu_ns : (7 * cost_ns_ + cpu_ns) / 8;  // one slow time must not slow down the next
    next_ns_ = std::max(next_ns_, now_ns - std::min(now_ns, period_ns() / 2)) + period_ns();
  }

 private:
  std::uint64_t wanted_ns_;
  double share_;
  std::uint64_t longest_ns_;
  std::uint64_t cost_ns_ = 0;
  std::uint64_t next_ns_ = 0;
};

}  // namespace llmprof::host
