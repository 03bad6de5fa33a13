#include "analyze/device_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analyze/host.h"
#include "analyze/host_memory.h"
#include "analyze/questions.h"
#include "analyze/rows_of.h"

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
  LLMPROF_LET(const trace::Columns columns, ask_columns(run, "sql/device_memory_changes"));
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
  LLMPROF_LET(const trace::Columns columns, ask_columns(run, "sql/device_memory_readings"));
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
  std::string sql(find_question("sql/device_memory_at")->sql);
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
  LLMPROF_LET(const trace::ResultTable table, ask(run, "sql/device_memory_devices"));
  if (table.rows.empty()) return memories;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const RowView row{table, i};
    memories.devices.emplace_back();
    memories.devices.back().device_id = row.integer("id");
    memories.devices.back().name = row.text("name");
    memories.devices.back().total_bytes = row.integer("memory_bytes");
    memories.caching_allocator = row.integer("caching_allocator") != 0;
  }
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

}  // namespace llmprof::analyze
