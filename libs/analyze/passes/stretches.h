#pragma once
// Stretches of time that do not overlap, each with the operator that owns it. They come in order of their begin and are
// forgotten once the time before some moment was dealt with, so memory does not grow with a run.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "analyze/passes/busy.h"
#include "analyze/passes/timeline.h"
#include "trace/schema.h"

namespace llmprof::analyze {

class Stretches {
 public:
  // By begin. Where it overlaps earlier ones, those keep the time: what began first owns it until it ends.
  void add(Window window, trace::Name op) {
    const std::int64_t begin_ns = std::max(window.begin_ns, covered_until_ns_);
    if (window.end_ns <= begin_ns) return;
    begin_ns_.push_back(begin_ns);
    end_ns_.push_back(window.end_ns);
    op_.push_back(op);
    covered_until_ns_ = window.end_ns;
  }

  // Calls owned(ns, op) for the parts of the window inside a stretch and free(window) for those between, by time.
  template <class Owned, class Free>
  void divide(Window window, Owned owned, Free free) {
    const std::size_t last = find_last_at_most(begin_ns_.data(), begin_ns_.size(), window.begin_ns, cursor_);
    std::int64_t at_ns = window.begin_ns;
    for (std::size_t i = last == kNotFound ? 0 : last; i < begin_ns_.size() && begin_ns_[i] < window.end_ns; ++i) {
      const std::int64_t from = std::max(begin_ns_[i], at_ns), to = std::min(end_ns_[i], window.end_ns);
      if (to <= from) continue;
      if (from > at_ns) free(Window{at_ns, from});
      owned(to - from, op_[i]);
      at_ns = to;
    }
    if (window.end_ns > at_ns) free(Window{at_ns, window.end_ns});
  }

  // What ends by then is not asked for any more.
  void forget(std::int64_t until_ns) {
    const auto gone = std::upper_bound(end_ns_.begin(), end_ns_.end(), until_ns) - end_ns_.begin();
    begin_ns_.erase(begin_ns_.begin(), begin_ns_.begin() + gone);
    end_ns_.erase(end_ns_.begin(), end_ns_.begin() + gone);
    op_.erase(op_.begin(), op_.begin() + gone);
    cursor_ = 0;
  }

 private:
  std::vector<std::int64_t> begin_ns_, end_ns_;
  std::vector<trace::Name> op_;
  std::int64_t covered_until_ns_ = INT64_MIN;
  std::size_t cursor_ = 0;
};

}  // namespace llmprof::analyze
