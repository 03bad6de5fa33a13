#include "exporters/tracks.h"

#include <fmt/format.h>

#include <unordered_set>

#include "base/strings.h"

namespace llmprof::exporters {
namespace {

constexpr std::int64_t kFirstFreeNumber = 1 << 22;  // above the highest pid that Linux gives

// The number itself if it is free, else the next one that no system would give.
class UniqueNumbers {
 public:
  std::int64_t take(std::int64_t wanted) {
    if (wanted > 0 && used_.insert(wanted).second) return wanted;
    while (!used_.insert(next_).second) ++next_;
    return next_;
  }

 private:
  std::unordered_set<std::int64_t> used_;
  std::int64_t next_ = kFirstFreeNumber;
};

Result<void> load_processes(const trace::Run& run, Tracks& tracks) {
  LLMPROF_LET(const trace::ResultTable rows,
              run.query("SELECT id, pid, executable, arguments, rank FROM process ORDER BY begin_ns, id"));
  UniqueNumbers pids;
  for (const auto& row : rows.rows) {
    HostProcess process{row[0].as_int(), pids.take(row[1].as_int()), std::string(base::base_name(row[2].text)),
                        row[3].text, row[4].maybe_int()};
    if (process.name.empty()) process.name = "process";
    if (process.rank) process.name += fmt::format(" (rank {})", *process.rank);
    tracks.process_of_id.emplace(process.id, tracks.processes.size());
    tracks.processes.push_back(std::move(process));
  }
  if (tracks.processes.empty()) tracks.processes.push_back({0, pids.take(1), "process", "", std::nullopt});
  return {};
}

Result<void> load_threads(const trace::Run& run, Tracks& tracks) {
  LLMPROF_LET(const trace::ResultTable rows,
              run.query("SELECT id, process_id, tid, name FROM thread ORDER BY begin_ns, id"));
  UniqueNumbers tids;
  for (const auto& row : rows.rows) {
    const auto process = tracks.process_of_id.find(row[1].as_int());
    tracks.thread_of_id.emplace(row[0].as_int(), tracks.threads.size());
    tracks.threads.push_back({row[0].as_int(), tids.take(row[2].as_int()), row[3].text,
                              process != tracks.process_of_id.end() ? process->second : 0});
  }
  return {};
}

Result<void> load_devices(const trace::Run& run, Tracks& tracks) {
  LLMPROF_LET(const trace::ResultTable rows,
              run.query("SELECT id, kind, name, chip, units, memory_bytes, ordinal FROM device ORDER BY id"));
  std::unordered_set<std::int64_t> gpus, others;
  for (const auto& row : rows.rows) {
    Device device{.id = row[0].as_int(), .is_gpu = row[1].text == "gpu", .name = row[2].text, .chip = row[3].text};
    device.units = row[4].as_int();
    device.memory_bytes = row[5].as_int();
    std::unordered_set<std::int64_t>& taken = device.is_gpu ? gpus : others;
    device.ordinal = row[6].maybe_int().value_or(0);
    while (!taken.insert(device.ordinal).second) ++device.ordinal;
    device.title = fmt::format("{} {}{}{}", device.is_gpu ? "GPU" : "CPU", device.ordinal,
                               device.name.empty() ? "" : ": ", device.name);
    tracks.device_of_id.emplace(device.id, tracks.devices.size());
    tracks.devices.push_back(std::move(device));
  }
  return {};
}

}  // namespace

std::size_t Tracks::thread(std::int64_t id) {
  const auto found = thread_of_id.find(id);
  if (found != thread_of_id.end()) return found->second;
  thread_of_id.emplace(id, threads.size());
  threads.push_back({id, 2 * kFirstFreeNumber + static_cast<std::int64_t>(threads.size()), "unknown thread", 0});
  return threads.size() - 1;
}

std::size_t Tracks::device(std::int64_t id) {
  const auto found = device_of_id.find(id);
  if (found != device_of_id.end()) return found->second;
  device_of_id.emplace(id, devices.size());
  devices.push_back({.id = id, .is_gpu = true, .ordinal = 1000 + id, .title = fmt::format("unknown device {}", id)});
  return devices.size() - 1;
}

Result<Tracks> load_tracks(const trace::Run& run) {
  Tracks tracks;
  LLMPROF_TRY(load_processes(run, tracks));
  LLMPROF_TRY(load_threads(run, tracks));
  LLMPROF_TRY(load_devices(run, tracks));
  return tracks;
}

Result<std::optional<std::int64_t>> wall_of_zero_ns(const trace::Run& run) {
  LLMPROF_LET(const trace::ResultTable rows,
              run.query("SELECT wall_ns - ts_ns FROM clock_sync ORDER BY error_ns, ts_ns LIMIT 1"));
  if (rows.rows.empty()) return std::optional<std::int64_t>();
  return rows.rows[0][0].maybe_int();
}

}  // namespace llmprof::exporters
