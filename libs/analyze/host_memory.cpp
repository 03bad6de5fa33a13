#include "analyze/host_memory.h"

#include <algorithm>
#include <map>
#include <optional>

namespace llmprof::analyze {
namespace {

std::int64_t period_of(const Periods& periods, std::int64_t process_id) {
  const auto found = periods.find(process_id);
  return found == periods.end() ? 0 : found->second;
}

// The readings of each process while it was alive: the last one of a process that ended has no memory left.
using PointsByProcess = std::unordered_map<std::int64_t, std::vector<MemoryPoint>>;
PointsByProcess series_of(const std::vector<MemoryReading>& readings) {
  PointsByProcess series;
  for (const MemoryReading& reading : readings) {
    if (reading.rss_bytes > 0) series[reading.process_id].push_back({reading.ts_ns, reading.rss_bytes});
  }
  return series;
}

// Memory at the reading nearest to `ts_ns`, if there is one within `tolerance_ns`.
std::optional<std::int64_t> memory_near(const std::vector<MemoryPoint>& points, std::int64_t ts_ns,
                                        std::int64_t tolerance_ns) {
  const auto after = std::lower_bound(points.begin(), points.end(), ts_ns,
                                      [](const MemoryPoint& point, std::int64_t time) { return point.ts_ns < time; });
  const MemoryPoint* nearest = nullptr;
  if (after != points.end()) nearest = &*after;
  if (after != points.begin()) {
    const MemoryPoint& before = *(after - 1);
    if (nearest == nullptr || ts_ns - before.ts_ns <= nearest->ts_ns - ts_ns) nearest = &before;
  }
  if (nearest == nullptr || std::abs(nearest->ts_ns - ts_ns) > tolerance_ns) return {};
  return nearest->rss_bytes;
}

std::optional<std::int64_t> gain_of(const MemoryRange& range, const PointsByProcess& series, const Periods& periods) {
  const auto found = series.find(range.process_id);
  if (found == series.end()) return {};
  const std::int64_t period = period_of(periods, range.process_id);
  const auto begin = memory_near(found->second, range.begin_ns, period);
  const auto end = memory_near(found->second, range.end_ns, period);
  if (!begin || !end) return {};
  return *end - *begin;
}

}  // namespace

std::vector<MemoryPoint> memory_of_all(const std::vector<MemoryReading>& readings, const Periods& periods) {
  std::unordered_map<std::int64_t, std::int64_t> last_ns;
  for (const MemoryReading& reading : readings) last_ns[reading.pid] = reading.ts_ns;
  std::unordered_map<std::int64_t, std::int64_t> now;  // pid -> bytes
  std::multimap<std::int64_t, std::int64_t> gone;      // when -> pid
  std::int64_t total = 0;
  std::vector<MemoryPoint> points;
  const auto set = [&](std::int64_t pid, std::int64_t ts_ns, std::int64_t bytes) {
    std::int64_t& known = now[pid];
    total += bytes - known;
    known = bytes;
    points.push_back({ts_ns, total});
  };
  for (const MemoryReading& reading : readings) {
    while (!gone.empty() && gone.begin()->first < reading.ts_ns) {
      set(gone.begin()->second, gone.begin()->first, 0);
      gone.erase(gone.begin());
    }
    set(reading.pid, reading.ts_ns, reading.rss_bytes);
    if (reading.ts_ns == last_ns[reading.pid] && reading.rss_bytes > 0) {
      gone.emplace(reading.ts_ns + 2 * period_of(periods, reading.process_id), reading.pid);
    }
  }
  return points;
}

std::vector<MemoryPoint> thinned(const std::vector<MemoryPoint>& points, std::size_t most) {
  if (points.size() <= most || most < 2) return points;
  const auto less = [](const MemoryPoint& a, const MemoryPoint& b) { return a.rss_bytes < b.rss_bytes; };
  const std::int64_t begin = points.front().ts_ns;
  const auto slices = static_cast<std::int64_t>(most / 2);
  const std::int64_t slice_ns = (points.back().ts_ns - begin) / slices + 1;
  std::vector<MemoryPoint> kept;
  for (auto at = points.begin(); at != points.end();) {
    const std::int64_t end_ns = begin + ((at->ts_ns - begin) / slice_ns + 1) * slice_ns;
    const auto end = std::find_if(at, points.end(), [&](const MemoryPoint& point) { return point.ts_ns >= end_ns; });
    const auto [lowest, highest] = std::minmax_element(at, end, less);
    kept.push_back(*std::min(lowest, highest));
    if (lowest->rss_bytes != highest->rss_bytes) kept.push_back(*std::max(lowest, highest));
    at = end;
  }
  return kept;
}

std::vector<GainOfRange> gains_of(const std::vector<MemoryRange>& ranges, const std::vector<MemoryReading>& readings,
                                  const Periods& periods) {
  const PointsByProcess series = series_of(readings);
  std::vector<GainOfRange> gains;
  std::vector<std::size_t> open;  // indices into gains, outermost first
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const MemoryRange& range = ranges[i];
    const auto gain = gain_of(range, series, periods);
    if (!gain) continue;
    while (!open.empty()) {  // only a range that holds this one whole is around it
      const MemoryRange& outer = ranges[gains[open.back()].range];
      if (outer.thread_id == range.thread_id && outer.process_id == range.process_id && outer.end_ns >= range.end_ns) {
        break;
      }
      open.pop_back();
    }
    if (!open.empty()) gains[open.back()].self_bytes -= *gain;
    open.push_back(gains.size());
    gains.push_back({i, *gain});
  }
  return gains;
}

}  // namespace llmprof::analyze
