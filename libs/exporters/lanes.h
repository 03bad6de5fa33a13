#pragma once
// Slices of one track, which come in order of their begin, onto lanes in which they nest: viewers draw a slice that
// begins inside another and ends after it wrongly, or refuse it.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/nesting.h"

namespace llmprof::exporters {

class Lanes {
 public:
  // Chooses the lane of a slice that begins no earlier than those before it. Calls close(lane, end_ns) for what ended
  // before it there, innermost first. `may_hold`: other slices may lie inside it.
  template <class Close>
  std::size_t place(std::int64_t begin_ns, std::int64_t end_ns, bool may_hold, Close&& close) {
    for (std::size_t lane = 0;; ++lane) {
      const auto* around = advance(lane, begin_ns, close);
      if (around != nullptr && (!around->item || around->end_ns < end_ns)) continue;
      lanes_[lane].open(end_ns, may_hold);
      return lane;
    }
  }
  // Closes what ended until then in a lane; the innermost slice that is still open there.
  template <class Close>
  const base::Nesting<bool>::Open* advance(std::size_t lane, std::int64_t until_ns, const Close& close) {
    if (lane == lanes_.size()) lanes_.emplace_back();
    return lanes_[lane].at(until_ns, [&](const auto& ended) { close(lane, ended.end_ns); });
  }
  template <class Close>
  void close_all(Close&& close) {
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane) advance(lane, INT64_MAX, close);
  }

 private:
  std::vector<base::Nesting<bool>> lanes_;  // of whether other slices may lie inside
};

}  // namespace llmprof::exporters
