// Readings over time: what devices and processes report, lowest and highest of each pixel.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "pictures/timeline_lanes.h"

namespace llmprof::pictures {
namespace {

// Counters that only grow, and what never changes, make no curve.
constexpr std::array<std::string_view, 8> kNoCurves = {"energy_j",      "memory_total_bytes", "performance_state",
                                                       "clock_limits",  "pcie_generation",    "pcie_width",
                                                       "sampler_cpu_s", "power_limit_w"};

class Curves {
 public:
  Curves(TimelineFacts& facts, Window window, int width)
      : facts_(facts), window_(window), pixel_ns_(Merger(window, width).pixel_ns()) {}

  void add(const std::string& group, const std::string& name, const std::string& unit, std::int64_t at_ns,
           double value) {
    if (!std::isfinite(value) || at_ns < window_.begin_ns || at_ns > window_.end_ns) return;
    Growing& growing = curves_[{group, name}];
    growing.curve.unit = unit;
    if (value != 0) growing.is_flat_zero = false;
    const std::int64_t pixel = (at_ns - window_.begin_ns) / pixel_ns_;
    Curve& curve = growing.curve;
    if (pixel == growing.pixel) {
      curve.low.back() = std::min(curve.low.back(), value);
      curve.high.back() = std::max(curve.high.back(), value);
      return;
    }
    growing.pixel = pixel;
    curve.ts_ns.push_back(at_ns);
    curve.low.push_back(value);
    curve.high.push_back(value);
  }
  std::string process_title(std::int64_t process_id) const {
    const auto found = facts_.tracks.process_of_id.find(process_id);
    if (found == facts_.tracks.process_of_id.end()) return "process";
    const exporters::HostProcess& process = facts_.tracks.processes[found->second];
    return fmt::format("{} {}", process.name, process.pid);
  }
  std::string device_title(std::int64_t device_id) {
    return facts_.tracks.devices[facts_.tracks.device(device_id)].title;
  }

  std::vector<Curve> take() {
    std::vector<Curve> all;
    for (auto& [key, growing] : curves_) {
      if (growing.is_flat_zero) continue;
      growing.curve.group = key.first;
      growing.curve.name = key.second;
      all.push_back(std::move(growing.curve));
    }
    return all;
  }

 private:
  struct Growing {
    Curve curve;
    std::int64_t pixel = -1;
    bool is_flat_zero = true;
  };
  TimelineFacts& facts_;
  Window window_;
  std::int64_t pixel_ns_;
  std::map<std::pair<std::string, std::string>, Growing> curves_;
};

}  // namespace

Result<std::vector<Curve>> read_curves(const trace::Run& run, TimelineFacts& facts, Window window, int width) {
  Curves curves(facts, window, width);
  const std::string when = fmt::format("ts_ns >= {} AND ts_ns <= {}", window.begin_ns, window.end_ns);
  LLMPROF_TRY(trace::each_row(
      run,
      fmt::format(
          "SELECT device_id, process_id, metric, unit, ts_ns, CAST(value AS DOUBLE) FROM telemetry WHERE {} ORDER BY "
          "ts_ns",
          when),
      [&](const trace::ChunkRow& row) {
        if (std::find(kNoCurves.begin(), kNoCurves.end(), row.text(2)) != kNoCurves.end()) return;
        const std::string group = row.known(1) ? curves.process_title(row[1]) : curves.device_title(row[0]);
        curves.add(group, row.text(2), row.text(3), row[4], row.real(5));
      }));
  LLMPROF_TRY(trace::each_row(
      run,
      fmt::format(
          "SELECT process_id, ts_ns, CAST(rss_bytes AS DOUBLE) FROM process_usage WHERE {} ORDER BY process_id, ts_ns",
          when),
      [&](const trace::ChunkRow& row) {
        curves.add(curves.process_title(row[0]), "rss_bytes", "B", row[1], row.real(2));
      }));
  return curves.take();
}

}  // namespace llmprof::pictures
