#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "analyze/questions.h"
#include "analyze/rows_of.h"
#include "analyze/sections/host_memory.h"
#include "analyze/sections/sections.h"

namespace llmprof::analyze {

namespace {

constexpr std::size_t kShownPoints = 120;

using Points = std::vector<MemoryPoint>;

MemoryPoint highest_of(const Points& points) { return *std::ranges::max_element(points, {}, &MemoryPoint::rss_bytes); }

struct Changes {
  std::vector<MemoryChange> all;
  std::map<std::int64_t, std::vector<MemoryChange>> by_process;
};

Result<std::map<std::int64_t, Changes>> read_changes(const trace::Run& run, DeviceMemories& memories) {
  LLMPROF_LET(const trace::Columns columns, ask_columns(run, "device_memory_changes"));
  std::map<std::int64_t, DeviceMemory*> known;
  for (DeviceMemory& device : memories.devices) known[device.device_id] = &device;
  std::map<std::int64_t, Changes> devices;
  for (std::size_t i = 0; i < columns.rows(); ++i) {
    const auto& v = columns.values;
    const auto device = known.find(v[0][i]);
    if (device == known.end()) continue;
    const std::int64_t end_ns = v[3][i], bytes = v[4][i];
    Changes& changes = devices[v[0][i]];
    std::vector<MemoryChange>& own = changes.by_process[v[1][i]];
    const auto add = [&](const MemoryChange& change) {
      changes.all.push_back(change);
      own.push_back(change);
    };
    add({v[2][i], bytes});
    ++device->second->allocations;
    if (end_ns != trace::Columns::kNull) {
      add({end_ns, -bytes});
    } else {
      ++device->second->never_freed;
      device->second->never_freed_bytes += bytes;
    }
  }
  return devices;
}

struct Readings {
  Points all;
  std::map<std::int64_t, Points> by_process;
};

Result<std::map<std::int64_t, Readings>> read_readings(const trace::Run& run) {
  LLMPROF_LET(const trace::Columns columns, ask_columns(run, "device_memory_readings"));
  std::map<std::int64_t, Readings> devices;
  for (std::size_t i = 0; i < columns.rows(); ++i) {
    const auto& v = columns.values;
    Readings& readings = devices[v[0][i]];
    Points& points = v[1][i] == trace::Columns::kNull ? readings.all : readings.by_process[v[1][i]];
    points.push_back({v[2][i], v[3][i]});
  }
  return devices;
}

struct ProcessName {
  std::string name;
  std::int64_t pid = 0;
};

Result<std::map<std::int64_t, ProcessName>> read_processes(const trace::Run& run) {
  LLMPROF_LET(const trace::ResultTable table, run.query("SELECT id, executable, pid FROM process"));
  std::map<std::int64_t, ProcessName> names;
  for (const auto& row : table.rows) names[row[0].as_int()] = {row[1].text, row[2].as_int()};
  return names;
}

Result<void> fill_at_peak(const trace::Run& run, DeviceMemory& device) {
  std::string sql(sql_of("device_memory_at"));
  constexpr std::string_view kAsked = "SELECT 0 AS device, 0 AS moment";
  sql.replace(sql.find(kAsked), kAsked.size(),
              fmt::format("SELECT {} AS device, {} AS moment", device.device_id, device.peak_ns));
  LLMPROF_LET(const trace::ResultTable table, run.query(sql));
  LLMPROF_LET(device.at_peak, rows_as<AllocationGroup>(table));
  for (AllocationGroup& group : device.at_peak) {
    device.at_peak_allocations = group.all_allocations;
    group.share = static_cast<double>(group.bytes) / static_cast<double>(std::max<std::int64_t>(device.peak_bytes, 1));
  }
  return {};
}

Result<void> fill_allocations(const trace::Run& run, const Changes& changes, DeviceMemory& device) {
  const Points points = allocated_over_time(changes.all);
  if (points.empty()) return {};
  const MemoryPoint highest = highest_of(points);
  device.peak_bytes = highest.rss_bytes;
  device.peak_ns = highest.ts_ns;
  device.over_time = thinned(points, kShownPoints);
  LLMPROF_LET(device.open_ranges, open_at(run, highest.ts_ns));
  return fill_at_peak(run, device);
}

Result<void> fill_driver(const trace::Run& run, const Readings& readings, DeviceMemory& device) {
  if (readings.all.empty()) return {};
  const MemoryPoint highest = highest_of(readings.all);
  device.driver_peak_bytes = highest.rss_bytes;
  device.driver_peak_ns = highest.ts_ns;
  device.driver_first_bytes = readings.all.front().rss_bytes;
  device.driver_over_time = thinned(readings.all, kShownPoints);
  LLMPROF_LET(device.driver_open_ranges, open_at(run, highest.ts_ns));
  return {};
}

// By the driver where it tells, as that counts contexts and libraries too.
void fill_processes(const Changes& changes, const Readings& readings, const std::map<std::int64_t, ProcessName>& names,
                    DeviceMemory& device) {
  const auto add = [&](std::int64_t process_id, const Points& points, const char* source) {
    const auto name = names.find(process_id);
    if (name == names.end() || points.empty()) return;
    const MemoryPoint highest = highest_of(points);
    device.processes.push_back({name->second.name, name->second.pid, highest.rss_bytes, highest.ts_ns, source});
  };
  for (const auto& [process_id, points] : readings.by_process) add(process_id, points, "driver");
  for (const auto& [process_id, own] : changes.by_process) {
    if (!readings.by_process.contains(process_id)) add(process_id, allocated_over_time(own), "allocations");
  }
  std::ranges::stable_sort(device.processes, std::greater<>(), &ProcessDeviceMemory::peak_bytes);
}

}  // namespace

std::vector<MemoryPoint> allocated_over_time(std::vector<MemoryChange> changes) {
  std::ranges::stable_sort(changes, [](const MemoryChange& a, const MemoryChange& b) {
    return a.ts_ns != b.ts_ns ? a.ts_ns < b.ts_ns : a.bytes < b.bytes;
  });
  std::vector<MemoryPoint> points;
  std::int64_t bytes = 0;
  for (const MemoryChange& change : changes) {
    bytes += change.bytes;
    points.push_back({change.ts_ns, bytes});
  }
  return points;
}

Result<DeviceMemories> device_memories(const trace::Run& run) {
  DeviceMemories memories;
  LLMPROF_LET(memories.devices, ask_rows<DeviceMemory>(run, "device_memory_devices"));
  if (memories.devices.empty()) return memories;
  memories.caching_allocator = memories.devices.front().caching_allocator;
  LLMPROF_LET(const auto changes, read_changes(run, memories));
  LLMPROF_LET(const auto readings, read_readings(run));
  LLMPROF_LET(const auto names, read_processes(run));
  static const Changes kNoChanges;
  static const Readings kNoReadings;
  for (DeviceMemory& device : memories.devices) {
    const auto change = changes.find(device.device_id);
    const auto reading = readings.find(device.device_id);
    const Changes& own = change == changes.end() ? kNoChanges : change->second;
    const Readings& read = reading == readings.end() ? kNoReadings : reading->second;
    LLMPROF_TRY(fill_allocations(run, own, device));
    LLMPROF_TRY(fill_driver(run, read, device));
    fill_processes(own, read, names, device);
  }
  return memories;
}

namespace {

struct AllocatorChanges {
  std::vector<MemoryChange> given, held;
};

Result<std::map<std::int64_t, AllocatorChanges>> read_changes(const trace::Run& run) {
  LLMPROF_LET(const trace::Columns columns, ask_columns(run, "allocator_changes"));
  std::map<std::int64_t, AllocatorChanges> devices;
  for (std::size_t i = 0; i < columns.rows(); ++i) {
    const auto& v = columns.values;
    AllocatorChanges& changes = devices[v[0][i]];
    std::vector<MemoryChange>& all = v[1][i] != 0 ? changes.held : changes.given;
    all.push_back({v[2][i], v[4][i]});
    if (v[3][i] != trace::Columns::kNull) all.push_back({v[3][i], -v[4][i]});
  }
  return devices;
}

enum class Asked : std::uint8_t { kAtPeak, kNeverFreed };

Result<std::vector<AllocatingStack>> read_stacks(const trace::Run& run, Asked asked, const DeviceAllocator& device,
                                                 std::int64_t& allocations, std::int64_t& bytes) {
  std::string sql(sql_of("allocator_stacks"));
  constexpr std::string_view kAsked = "SELECT 0 AS device, 0 AS moment, false AS never_freed";
  const bool never_freed = asked == Asked::kNeverFreed;
  sql.replace(sql.find(kAsked), kAsked.size(),
              fmt::format("SELECT {} AS device, {} AS moment, {} AS never_freed", device.device_id,
                          never_freed ? device.begin_ns : device.peak_ns, never_freed));
  LLMPROF_LET(const trace::ResultTable table, run.query(sql));
  LLMPROF_LET(std::vector<AllocatingStack> stacks, rows_as<AllocatingStack>(table));
  allocations = bytes = 0;
  for (const AllocatingStack& stack : stacks) allocations += stack.allocations, bytes += stack.bytes;
  const auto whole = static_cast<double>(std::max<std::int64_t>(1, never_freed ? bytes : device.peak_bytes));
  for (AllocatingStack& stack : stacks) stack.share = static_cast<double>(stack.bytes) / whole;
  return stacks;
}

Result<void> fill_events(const trace::Run& run, const AllocatorChanges& changes, DeviceAllocator& device) {
  const std::vector<MemoryPoint> given = allocated_over_time(changes.given);
  if (given.empty()) return {};
  const MemoryPoint highest = *std::ranges::max_element(given, {}, &MemoryPoint::rss_bytes);
  device.begin_ns = given.front().ts_ns;
  device.peak_bytes = highest.rss_bytes;
  device.peak_ns = highest.ts_ns;
  const std::vector<MemoryPoint> held = allocated_over_time(changes.held);
  if (!held.empty()) {
    const MemoryPoint most = *std::ranges::max_element(held, {}, &MemoryPoint::rss_bytes);
    device.held_peak_bytes = most.rss_bytes;
    device.held_peak_ns = most.ts_ns;
    device.held_at_peak_bytes = value_at(held, device.peak_ns);
    device.held_over_time = thinned(held, kShownPoints);
  }
  std::int64_t unused = 0;
  LLMPROF_LET(device.at_peak, read_stacks(run, Asked::kAtPeak, device, device.at_peak_allocations, unused));
  LLMPROF_LET(device.never_freed,
              read_stacks(run, Asked::kNeverFreed, device, device.never_freed_allocations, device.never_freed_bytes));
  return {};
}

Result<void> fill_pools(const trace::Run& run, Allocators& all) {
  LLMPROF_LET(std::vector<AllocatorPool> pools, ask_rows<AllocatorPool>(run, "allocator_pools"));
  for (AllocatorPool& pool : pools) {
    const auto device = std::ranges::find(all.devices, pool.device_id, &DeviceAllocator::device_id);
    if (device == all.devices.end()) continue;
    pool.free_share = static_cast<double>(pool.free_bytes) / static_cast<double>(std::max<std::int64_t>(pool.bytes, 1));
    device->pools.push_back(std::move(pool));
  }
  return {};
}

}  // namespace

std::optional<std::int64_t> value_at(const std::vector<MemoryPoint>& points, std::int64_t ts_ns) {
  const auto after = std::ranges::upper_bound(points, ts_ns, {}, &MemoryPoint::ts_ns);
  if (after == points.begin()) return std::nullopt;
  return std::prev(after)->rss_bytes;
}

Result<Allocators> allocators(const trace::Run& run) {
  Allocators all;
  LLMPROF_LET(all.devices, ask_rows<DeviceAllocator>(run, "allocator_devices"));
  if (all.devices.empty()) return all;
  LLMPROF_LET(const auto changes, read_changes(run));
  for (DeviceAllocator& device : all.devices) {
    const auto own = changes.find(device.device_id);
    if (own != changes.end()) LLMPROF_TRY(fill_events(run, own->second, device));
  }
  LLMPROF_TRY(fill_pools(run, all));
  LLMPROF_LET(const trace::ResultTable notes,
              run.query("SELECT text FROM note WHERE subject = 'out of memory' ORDER BY ts_ns LIMIT 20"));
  for (const auto& row : notes.rows) all.out_of_memory.push_back(row[0].text);
  return all;
}

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
