#pragma once
// Slices of one track, which come in order of their begin, onto lanes in which they nest: viewers draw a slice that
// begins inside another and ends after it wrongly, or refuse it.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace llmprof::exporters {

class Lanes {
 public:
  // Chooses the lane of a slice that begins no earlier than those before it. Calls close(lane, end_ns) for what ended
  // before it there, innermost first. `may_hold`: other slices may lie inside it.
  template <class Close>
  std::size_t place(std::int64_t begin_ns, std::int64_t end_ns, bool may_hold, Close&& close) {
    for (std::size_t lane = 0;; ++lane) {
      if (lane == lanes_.size()) lanes_.emplace_back();
      advance(lane, begin_ns, close);
      std::vector<Open>& open = lanes_[lane];
      if (!open.empty() && (!open.back().may_hold || open.back().end_ns < end_ns)) continue;
      open.push_back({end_ns, may_hold});
      return lane;
    }
  }
  // Closes what ended until then in a lane.
  template <class Close>
  void advance(std::size_t lane, std::int64_t until_ns, Close&& close) {
    if (lane == lanes_.size()) lanes_.emplace_back();
    std::vector<Open>& open = lanes_[lane];
    while (!open.empty() && open.back().end_ns <= until_ns) {
      close(lane, open.back().end_ns);
      open.pop_back();
    }
  }
  template <class Close>
  void close_all(Close&& close) {
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane) advance(lane, INT64_MAX, close);
  }

 private:
  struct Open {
    std::int64_t end_ns;
    bool may_hold;
  };
  std::vector<std::vector<Open>> lanes_;  // [lane], outermost first
};

}  // namespace llmprof::exporters
