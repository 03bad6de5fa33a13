#pragma once
// The slices of one lane in memory, with sums over 32, 1024, … of them: any window in any zoom costs as much as it has
// pixels, however many slices lie in it. A slice takes 12 bytes, 4 each for its name, id and launch where those of the
// lane differ, and 2.7 for the sums.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

#include "pictures/timeline.h"
#include "view/pixels.h"

namespace llmprof::view {

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
  // What overlaps the window, widened to whole pixels, by the rule of view/pixels.h. Returns how many slices that is.
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
