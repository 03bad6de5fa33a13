#pragma once
// Slices of one lane in the resolution of a picture. Time is cut into pixels of a power of two of nanoseconds; a slice
// at least as long as a pixel stays as it is, shorter ones that begin in the same pixel become one. So a lane has at
// most two slices per pixel, and neighbouring windows of the same zoom agree where they overlap.

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace llmprof::view {

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

}  // namespace llmprof::view
