#pragma once
// Time with at least one kernel executing: the union of kernel intervals of each device, clipped to windows. Kernels
// come sorted by begin, in one block or several; memory does not grow with them.

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

namespace llmprof::analyze {

struct Window {
  std::int64_t begin_ns = 0, end_ns = 0;
};

// Sorted, disjoint windows that cover the same time.
std::vector<Window> union_of(std::vector<Window> windows);

// Busy time inside each of a list of windows, which are sorted by begin and, but for oddities, disjoint.
class BusyLane {
 public:
  explicit BusyLane(std::vector<Window> windows) : windows_(std::move(windows)), busy_ns_(windows_.size()) {}
  void add(Window busy);              // disjoint, in order of time
  void merge(const BusyLane& other);  // the same windows, another device
  void forget() { windows_.clear(), busy_ns_.clear(); }
  const std::vector<std::int64_t>& busy_ns() const { return busy_ns_; }

 private:
  std::vector<Window> windows_;
  std::vector<std::int64_t> busy_ns_;
  std::size_t next_ = 0;  // windows before it end before all that will come
};

// Devices are counted apart and added up: two devices busy for 1 ms in the same window are 2 ms. `counts`: whether a
// device counts for a lane.
class BusyTime {
 public:
  using Counts = std::function<bool(std::size_t lane, std::int64_t device_id)>;
  explicit BusyTime(std::vector<BusyLane> lanes, Counts counts = {})
      : lanes_(std::move(lanes)), counts_(std::move(counts)) {}
  void add(std::int64_t device_id, Window kernel);  // by begin, per device
  std::vector<BusyLane> finish();                   // the lanes, summed over devices

 private:
  struct Device {
    bool open = false;
    Window current;
    std::vector<BusyLane> lanes;
  };
  std::vector<BusyLane> lanes_;
  Counts counts_;
  std::map<std::int64_t, Device> devices_;
};

}  // namespace llmprof::analyze
