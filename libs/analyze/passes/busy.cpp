#include "analyze/passes/busy.h"

#include <algorithm>

namespace llmprof::analyze {

std::vector<Window> union_of(std::vector<Window> windows) {
  std::ranges::sort(windows, {}, &Window::begin_ns);
  std::vector<Window> merged;
  for (const Window& window : windows) {
    if (!merged.empty() && window.begin_ns <= merged.back().end_ns) {
      merged.back().end_ns = std::max(merged.back().end_ns, window.end_ns);
    } else {
      merged.push_back(window);
    }
  }
  return merged;
}

void BusyLane::add(Window busy) {
  while (next_ < windows_.size() && windows_[next_].end_ns <= busy.begin_ns) ++next_;
  for (std::size_t i = next_; i < windows_.size() && windows_[i].begin_ns < busy.end_ns; ++i) {
    const std::int64_t inside =
        std::min(busy.end_ns, windows_[i].end_ns) - std::max(busy.begin_ns, windows_[i].begin_ns);
    busy_ns_[i] += std::max<std::int64_t>(0, inside);  // a window among overlapping ones may have ended
  }
}

void BusyLane::merge(const BusyLane& other) {
  for (std::size_t i = 0; i < other.busy_ns_.size(); ++i) busy_ns_[i] += other.busy_ns_[i];
}

void BusyTime::add(std::int64_t device_id, Window kernel) {
  Device& device = devices_[device_id];
  if (!device.open) {
    device.lanes = lanes_;
    for (std::size_t i = 0; counts_ && i < device.lanes.size(); ++i) {
      if (!counts_(i, device_id)) device.lanes[i].forget();
    }
    device.open = true;
    device.current = kernel;
  } else if (kernel.begin_ns <= device.current.end_ns) {
    device.current.end_ns = std::max(device.current.end_ns, kernel.end_ns);
  } else {
    for (BusyLane& lane : device.lanes) lane.add(device.current);
    device.current = kernel;
  }
}

std::vector<BusyLane> BusyTime::finish() {
  for (auto& [id, device] : devices_) {
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
      device.lanes[i].add(device.current);
      lanes_[i].merge(device.lanes[i]);
    }
  }
  devices_.clear();
  return std::move(lanes_);
}

}  // namespace llmprof::analyze
