#pragma once
// The slices of one lane in memory, with sums over 32, 1024, … of them: any window in any zoom costs as much as it has
// pixels, however many slices lie in it. A slice takes 12 bytes, 4 each for its name, id and launch where those of the
// lane differ, and 2.7 for the sums.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "pictures/timeline.h"

namespace llmprof::view {

// Slices of one lane in the resolution of a picture. Time is cut into pixels of a power of two of nanoseconds; a slice
// at least as long as a pixel stays as it is, shorter ones that begin in the same pixel become one. So a lane has at
// most two slices per pixel, and neighbouring windows of the same zoom agree where they overlap.

// The largest power of two that is no longer than `ns`.
inline std::int64_t power_of_two(std::int64_t ns) {
  std::int64_t pixel = 1;
  while (pixel <= ns / 2) pixel *= 2;
  return pixel;
}
inline std::int64_t pixel_of(std::int64_t ts_ns, std::int64_t pixel) {  // of times before 0 too
  return ts_ns >= 0 ? ts_ns / pixel : -((pixel - 1 - ts_ns) / pixel);
}

// Which label has most weight, in fixed memory: exact while there are no more than kKept labels; beyond that every
// label with more than 1 / (kKept + 1) of the weight is still there (Misra and Gries, "Finding repeated elements",
// 1982).
class Heaviest {
 public:
  static constexpr std::size_t kKept = 6;

  void add(std::uint32_t label, std::int64_t weight) {
    std::size_t least = 0;
    for (std::size_t i = 0; i < kKept; ++i) {
      if (weights_[i] > 0 && labels_[i] == label) {
        weights_[i] += weight;
        return;
      }
      if (weights_[i] < weights_[least]) least = i;
    }
    const std::int64_t taken = weights_[least] < weight ? weights_[least] : weight;
    if (weights_[least] != 0) {
      for (std::int64_t& kept : weights_) kept -= taken;
    }
    if (weight > taken) labels_[least] = label, weights_[least] = weight - taken;
  }
  void add(const Heaviest& other) {
    for (std::size_t i = 0; i < kKept; ++i) {
      if (other.weights_[i] > 0) add(other.labels_[i], other.weights_[i]);
    }
  }
  std::uint32_t label() const {  // the lower number of equals
    std::size_t best = 0;
    for (std::size_t i = 1; i < kKept; ++i) {
      if (weights_[i] > weights_[best] || (weights_[i] == weights_[best] && labels_[i] < labels_[best])) best = i;
    }
    return labels_[best];
  }

 private:
  std::array<std::uint32_t, kKept> labels_{};
  std::array<std::int64_t, kKept> weights_{};  // 0: free
};

inline constexpr std::int64_t kNoLaunch = INT64_MIN;

// A label stands for whatever the caller tells apart: a name with its stage, say.
struct MergedSlice {
  std::int64_t begin_ns = 0, end_ns = 0;
  std::int64_t busy_ns = 0;  // of its time, covered by the slices in it
  std::int64_t count = 0;
  std::int64_t id = 0;                 // of a single one
  std::uint32_t label = 0;             // of several the one with most time
  std::int64_t launch_ns = kNoLaunch;  // of the first
};

// Slices that overlap, in order of their begin, onto rows in which they do not: the first row that is free. Ranges that
// nest lie in the row of their depth.
class Rows {
 public:
  std::size_t place(std::int64_t begin_ns, std::int64_t end_ns) {
    std::size_t row = 0;
    while (row < ends_.size() && ends_[row] > begin_ns) ++row;
    if (row == ends_.size()) ends_.push_back(end_ns);
    ends_[row] = end_ns;
    return row;
  }

 private:
  std::vector<std::int64_t> ends_;
};

struct IndexedSlice {
  std::int64_t begin_ns = 0, end_ns = 0;
  std::uint32_t label = 0;
  std::int64_t id = 0;
  std::int64_t launch_ns = kNoLaunch;  // kept to 4 s before begin_ns
};

// Numbers of which all are often the same: then one stands for all.
class NarrowColumn {
 public:
  void add(std::uint32_t value);
  std::uint32_t operator[](std::size_t at) const { return each_.empty() ? same_ : each_[at]; }
  void shrink() { each_.shrink_to_fit(); }
  std::size_t bytes() const { return each_.capacity() * sizeof(std::uint32_t); }

 private:
  std::size_t count_ = 0;
  std::uint32_t same_ = 0;
  std::vector<std::uint32_t> each_;  // empty while all are the same
};

class LaneIndex {
 public:
  // In any order; they may overlap until in_rows() took them apart.
  void add(const IndexedSlice& slice);
  // By begin, not overlapping, with their sums. Uses the lane up.
  static std::vector<LaneIndex> in_rows(LaneIndex lane);

  std::size_t size() const { return begins_.size(); }
  std::size_t bytes() const;
  IndexedSlice at(std::size_t at) const;

  using Emit = std::function<void(const MergedSlice&)>;
  // What overlaps the window, widened to whole pixels, what is shorter than a pixel merged. Returns how many slices
  // that is.
  std::int64_t merge(const pictures::Window& window, std::int64_t pixel, const Emit& emit) const;

 private:
  static constexpr std::size_t kFanout = 32;
  static constexpr std::uint32_t kFar = UINT32_MAX;  // stands in long_ or far_; no launch

  struct Sum {
    std::int64_t busy_ns = 0;
    Heaviest labels;
    void add(const Sum& other) {
      busy_ns += other.busy_ns;
      labels.add(other.labels);
    }
  };
  std::int64_t duration(std::size_t at) const { return durations_[at] == kFar ? long_.at(at) : durations_[at]; }
  std::int64_t end(std::size_t at) const { return begins_[at] + duration(at); }
  std::int64_t launch(std::size_t at) const;
  std::vector<std::uint32_t> by_begin() const;
  bool is_in_order() const;
  void finish();
  void add_slices(std::size_t from, std::size_t to, Sum& sum) const;
  void add_range(std::size_t from, std::size_t to, Sum& sum) const;
  void emit_group(std::size_t from, std::size_t to, const Emit& emit) const;
  std::size_t first_in(const pictures::Window& window, std::int64_t pixel) const;
  std::size_t first_from(std::int64_t ts_ns, std::size_t from) const;

  std::vector<std::int64_t> begins_;
  NarrowColumn durations_, labels_, ids_;
  NarrowColumn waits_;                                        // from launch to begin
  std::unordered_map<std::size_t, std::int64_t> long_, far_;  // durations and ids that 32 bits do not hold
  std::vector<std::vector<Sum>> sums_;                        // [level][group of kFanout^(level + 1) slices]
};

}  // namespace llmprof::view
