#pragma once
// Stretches of time that do not overlap, each with the operator that owns it, or the operators of a graph launch. They
// come in order of their begin and are forgotten once the time before some moment was dealt with, so memory does not
// grow with a run.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "analyze/passes/busy.h"
#include "analyze/passes/graphs.h"
#include "analyze/passes/timeline.h"
#include "trace/schema.h"

namespace llmprof::analyze {

struct Stretch {
  std::int64_t begin_ns = 0, end_ns = 0;
  trace::Name op;
  const Mix* mix = nullptr;  // of a launch whose nodes were not recorded; then `op` is none
};

class Stretches {
 public:
  // By begin. Where it overlaps earlier ones, those keep the time: what began first owns it until it ends.
  void add(Window window, trace::Name op, const Mix* mix = nullptr) {
    const std::int64_t begin_ns = std::max(window.begin_ns, covered_until_ns_);
    if (window.end_ns <= begin_ns) return;
    stretches_.push_back({begin_ns, window.end_ns, op, mix});
    covered_until_ns_ = window.end_ns;
  }

  // Calls owned(ns, stretch) for the parts of the window inside a stretch and free(window) for those between, by time.
  template <class Owned, class Free>
  void divide(Window window, Owned owned, Free free) {
    std::int64_t at_ns = window.begin_ns;
    for (std::size_t i = first_after(at_ns); i < stretches_.size() && stretches_[i].begin_ns < window.end_ns; ++i) {
      const std::int64_t from = std::max(stretches_[i].begin_ns, at_ns);
      const std::int64_t to = std::min(stretches_[i].end_ns, window.end_ns);
      if (from > at_ns) free(Window{at_ns, from});
      owned(to - from, stretches_[i]);
      at_ns = to;
      cursor_ = i;
    }
    if (window.end_ns > at_ns) free(Window{at_ns, window.end_ns});
  }

  bool empty() const { return stretches_.empty(); }

  // What ends by then is not asked for any more.
  void forget(std::int64_t until_ns) {
    stretches_.erase(stretches_.begin(), stretches_.begin() + static_cast<std::ptrdiff_t>(first_after(until_ns)));
    cursor_ = 0;
  }

 private:
  // The first that ends after this moment. Questions mostly come by time: it is where the last answer was, or next to
  // it.
  std::size_t first_after(std::int64_t ns) const {
    const auto ends_after = [&](std::size_t i) { return i >= stretches_.size() || stretches_[i].end_ns > ns; };
    const auto is_it = [&](std::size_t i) { return ends_after(i) && (i == 0 || stretches_[i - 1].end_ns <= ns); };
    for (const std::size_t i : {cursor_, cursor_ + 1}) {
      if (i <= stretches_.size() && is_it(i)) return i;
    }
    const auto by_end = [](const Stretch& stretch, std::int64_t at) { return stretch.end_ns <= at; };
    return static_cast<std::size_t>(std::lower_bound(stretches_.begin(), stretches_.end(), ns, by_end) -
                                    stretches_.begin());
  }

  std::vector<Stretch> stretches_;
  std::int64_t covered_until_ns_ = INT64_MIN;
  std::size_t cursor_ = 0;  // of the last one that a window met
};

}  // namespace llmprof::analyze
