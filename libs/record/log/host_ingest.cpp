#include "record/log/host_ingest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/file.h"
#include "host/host_log.h"
#include "host/thread_states.h"
#include "hw/telemetry/metrics.h"
#include "record/log/cuda_counters.h"

namespace llmprof::record {

// The process images of a run by pid and time, from both sides.
class HostImages final : public LogSink {
 public:
  HostImages(RunRows& rows, const HostFacts& facts) : rows_(rows), facts_(facts), names_(rows.writer.strings()) {}

  void define(wire::StringId id, std::string_view text) override { names_.define(id, text); }

  void receive(wire::RecordKind kind, std::uint32_t, std::span<const wire::Record> records) override {
    for (const wire::Record& record : records) {
      if (kind == wire::RecordKind::kProcess && facts_.window.holds(record.process.ts_ns)) take(record.process);
      if (kind == wire::RecordKind::kThread && record.thread.name != 0) {
        thread_names_[static_cast<std::int64_t>(record.thread.tid)] = record.thread.name;
      }
    }
  }
  void gap() override {}

  // A log begins with the first event and ends with the exit handlers; the process was there before and after.
  // Joins what the log said with the images of the capture logs;writes the rows of the others.
  void finish() {
    for (const LogImage& image : rows_.images) {
      Since entry{image.begin_ns, &image, image.process_id};
      if (Seen* seen = match(image)) {
        seen->joined = true;
        entry.begin_ns = std::min(entry.begin_ns, static_cast<std::int64_t>(seen->record.ts_ns));
        trace::ProcessRow& row = row_of(image.process_id);
        row.begin_ns = std::min(row.begin_ns, entry.begin_ns);
        if (seen->ended) row.end_ns = std::max(row.end_ns.value_or(row.begin_ns), seen->end_ns);
      }
      by_pid_[image.pid].push_back(entry);
    }
    for (const auto& [pid, images] : seen_) {
      for (const Seen& seen : images) {
        if (seen.joined) continue;
        by_pid_[pid].push_back(
            {static_cast<std::int64_t>(seen.record.ts_ns), nullptr, write_process(seen, &seen == &images.back())});
      }
    }
    for (auto& [pid, entries] : by_pid_) {
      std::stable_sort(entries.begin(), entries.end(),
                       [](const Since& a, const Since& b) { return a.begin_ns < b.begin_ns; });
    }
  }
  bool knows(std::int64_t pid) const { return by_pid_.contains(pid); }

  trace::Id process_at(std::int64_t pid, std::int64_t ts_ns) { return since(pid, ts_ns).process_id; }

  trace::Id thread_at(std::int64_t pid, std::int64_t tid, std::int64_t ts_ns) {
    const Since& image = since(pid, ts_ns);
    if (image.log != nullptr) {
      const auto known = image.log->threads.find(tid);
      if (known != image.log->threads.end()) return known->second;
    }
    const auto [found, first] = threads_.try_emplace({image.process_id, tid}, Sampled{0, ts_ns});
    if (first) found->second.id = rows_.next_id++;
    found->second.begin_ns = std::min(found->second.begin_ns, ts_ns);
    return found->second.id;
  }

  // those that only samples know
  void write_threads() {
    for (const auto& [key, thread] : threads_) {
      const auto name = thread_names_.find(key.second);
      trace::ThreadRow row;
      row.id = thread.id;
      row.process_id = key.first;
      row.tid = key.second;
      if (name != thread_names_.end()) row.name = names_.name(name->second);
      row.begin_ns = thread.begin_ns;
      rows_.writer.add(row);
      ++rows_.counts.threads;
    }
  }

 private:
  struct Seen {  // by the sampler
    wire::ProcessRecord record{};
    std::int64_t end_ns = INT64_MAX;  // when another image was seen in its place
    bool ended = false;
    bool joined = false;
  };
  struct Since {
    std::int64_t begin_ns = 0;
    const LogImage* log = nullptr;
    trace::Id process_id = 0;
  };
  struct Sampled {
    trace::Id id = 0;
    std::int64_t begin_ns = 0;
  };

  void take(const wire::ProcessRecord& record) {
    std::vector<Seen>& seen = seen_[static_cast<std::int64_t>(record.pid)];
    const auto ts_ns = static_cast<std::int64_t>(record.ts_ns);
    if (!seen.empty() && seen.back().end_ns == INT64_MAX) {
      seen.back().end_ns = ts_ns;
      seen.back().ended = true;
    }
    if (record.ended == 0) seen.push_back({.record = record});
  }

  // The same program (or one that ended before it could be asked), and the log began before another was seen in its
  // place.
  Seen* match(const LogImage& image) {
    const auto found = seen_.find(image.pid);
    if (found == seen_.end()) return nullptr;
    for (Seen& seen : found->second) {
      const bool same = static_cast<std::int64_t>(seen.record.start_ticks) == image.start_ticks &&
                        (seen.record.executable == 0 || names_.name(seen.record.executable).id == image.executable.id);
      if (same && !seen.joined && image.begin_ns < seen.end_ns) return &seen;
    }
    return nullptr;
  }

  trace::ProcessRow& row_of(trace::Id process_id) {
    return *std::ranges::find(rows_.process_rows, process_id, &trace::ProcessRow::id);
  }

  trace::Id write_process(const Seen& seen, bool last) {
    const bool root = static_cast<std::int64_t>(seen.record.pid) == facts_.info.root_pid;
    trace::ProcessRow row;
    row.id = rows_.next_id++;
    row.pid = static_cast<std::int64_t>(seen.record.pid);
    if (seen.record.parent_pid != 0) row.parent_pid = static_cast<std::int64_t>(seen.record.parent_pid);
    row.host = names_.name(seen.record.host);
    row.executable = names_.name(seen.record.executable);
    if (seen.record.arguments != 0) {
      row.arguments = rows_.writer.strings().intern(command_line(names_.text(seen.record.arguments)));
    }
    if (root && seen.record.executable == 0 && !facts_.info.executable.empty()) {  // it ended before it could be asked
      row.executable = rows_.writer.strings().intern(facts_.info.executable);
      row.arguments = rows_.writer.strings().intern(fmt::format("{}", fmt::join(facts_.info.command, " ")));
    }
    row.begin_ns = static_cast<std::int64_t>(seen.record.ts_ns);
    if (seen.ended) row.end_ns = std::max(seen.end_ns, row.begin_ns);
    if (root && last) row.exit_status = facts_.info.exit_status;
    row.injected = root && facts_.info.injectable;  // it had no event to write a log for
    rows_.process_rows.push_back(row);
    ++rows_.counts.processes;
    return row.id;
  }

  // A process of which only samples or readings are left gets a row with no more than its pid.
  Since& since(std::int64_t pid, std::int64_t ts_ns) {
    std::vector<Since>& entries = by_pid_[pid];
    if (entries.empty()) {
      entries.push_back({ts_ns, nullptr, rows_.next_id++});
      rows_.process_rows.push_back(trace::ProcessRow{.id = entries.back().process_id, .pid = pid, .begin_ns = ts_ns});
      ++rows_.counts.processes;
    }
    const auto after = std::upper_bound(entries.begin(), entries.end(), ts_ns,
                                        [](std::int64_t time, const Since& entry) { return time < entry.begin_ns; });
    return after == entries.begin() ? entries.front() : *(after - 1);
  }

  RunRows& rows_;
  const HostFacts& facts_;
  LogNames names_;
  std::map<std::int64_t, std::vector<Seen>> seen_;     // by pid, in order of time
  std::map<std::int64_t, std::vector<Since>> by_pid_;  // in order of time
  std::map<std::pair<trace::Id, std::int64_t>, Sampled> threads_;
  std::unordered_map<std::int64_t, wire::StringId> thread_names_;  // by tid
};

namespace {

trace::OptionalInt unless_unreadable(std::uint64_t value) {
  return value == host::kUnreadable ? trace::OptionalInt() : bounded(value);
}

}  // namespace

class HostIngest final : public LogSink {
 public:
  HostIngest(RunRows& rows, HostImages& images, const HostFacts& facts)
      : rows_(rows),
        images_(images),
        facts_(facts),
        names_(rows.writer.strings()),
        stacks_(rows, names_),
        counters_(rows.writer, rows.next_id) {}

  void define(wire::StringId id, std::string_view text) override { names_.define(id, text); }

  void receive(wire::RecordKind kind, std::uint32_t, std::span<const wire::Record> records) override {
    for (const wire::Record& record : records) take(kind, record);
  }
  void gap() override {}

  void finish(const LogStats& stats, const std::string& log_name) {
    for (const auto& [pid, row] : readings_) rows_.writer.add(row);
    counters_.write_all();
    counters_.add_losses(rows_.ledger, {});
    unknown_ += counters_.unknown();
    rows_.counts.records += static_cast<std::int64_t>(stats.records);
    const auto add = [&](trace::Loss loss, std::uint64_t count, const std::string& detail) {
      rows_.ledger.add(loss, static_cast<std::int64_t>(count), {}, detail);
    };
    add(trace::Loss::kBadTime, static_cast<std::uint64_t>(bad_times_), log_name);
    add(trace::Loss::kUnknownRecord, stats.unknown_records + static_cast<std::uint64_t>(unknown_), log_name);
    add(trace::Loss::kLostName, names_.lost_names(), log_name);
    add(trace::Loss::kLostName, stacks_.lost(), log_name + ": stacks of samples");
    add(trace::Loss::kDamagedBlock, stats.damaged_bytes, log_name);
    if (stats.damaged_bytes == 0) add(trace::Loss::kMissingBlock, stats.missing_blocks, log_name);
    add(trace::Loss::kTornTail, stats.torn_bytes, log_name);
  }

 private:
  void take(wire::RecordKind kind, const wire::Record& record) {
    switch (kind) {
      case wire::RecordKind::kUsage:
        return take_usage(record.usage);
      case wire::RecordKind::kIo:
        return take_io(record.io);
      case wire::RecordKind::kFrame:
        return stacks_.take(record.frame);
      case wire::RecordKind::kStack:
        return stacks_.take(record.stack);
      case wire::RecordKind::kSample:
        return take_sample(record.sample);
      case wire::RecordKind::kThreadTime:
        return take_thread_time(record.thread_time);
      case wire::RecordKind::kCpuGroup:
        return take_cpu_group(record.cpu_group);
      case wire::RecordKind::kTelemetryDevice:
        return take_telemetry_device(record.telemetry_device);
      case wire::RecordKind::kTelemetry:
        return take_telemetry(record.telemetry);
      case wire::RecordKind::kNote:
        return take_note(record.note);
      case wire::RecordKind::kCounterWindow:
        return take_counter_window(record.counter_window);
      case wire::RecordKind::kCounter:
        return take_counter(record.counter);
      case wire::RecordKind::kProcess:
      case wire::RecordKind::kThread:
        return;  // HostImages took them
      default:
        ++unknown_;
    }
  }

  void take_usage(const wire::UsageRecord& record) {
    if (!in_time(record.ts_ns)) return;
    const auto [found, first] = readings_.try_emplace(record.pid);
    trace::ProcessUsageRow& row = found->second;
    if (!first) rows_.writer.add(row);
    row = {};
    fill(row, record);
    row.ts_ns = reading_ns(record.pid, record.ts_ns);
    row.process_id = images_.process_at(record.pid, row.ts_ns);
  }

  // The last numbers of the program are read after its end: they are those of its end.
  std::int64_t reading_ns(std::uint32_t pid, std::uint64_t ts_ns) const {
    const std::int64_t time_ns = bounded(ts_ns);
    const bool ended = facts_.root_end_ns && static_cast<std::int64_t>(pid) == facts_.info.root_pid;
    return ended ? std::min(time_ns, *facts_.root_end_ns) : time_ns;
  }

  // These come less often: they join the reading before them.
  void take_io(const wire::IoRecord& record) {
    if (!in_time(record.ts_ns)) return;
    const auto found = readings_.find(record.pid);
    if (found == readings_.end()) return;
    trace::ProcessUsageRow& row = found->second;
    row.read_bytes = unless_unreadable(record.read_bytes);
    row.written_bytes = unless_unreadable(record.written_bytes);
    row.voluntary_switches = bounded(record.voluntary_switches);
    row.involuntary_switches = bounded(record.involuntary_switches);
    if (record.peak_rss_bytes != 0) row.peak_rss_bytes = bounded(record.peak_rss_bytes);
  }

  void take_sample(const wire::SampleRecord& record) {
    if (!in_time(record.ts_ns)) return;
    trace::SampleRow row;
    row.id = rows_.next_id++;
    fill(row, record);
    row.thread_id = images_.thread_at(record.pid, record.tid, row.ts_ns);
    row.stack_id = stacks_.id(record.stack);
    rows_.writer.add(row);
  }

  void take_thread_time(const wire::ThreadTimeRecord& record) {
    if (!in_time(record.ts_ns)) return;
    const auto state = static_cast<std::size_t>(record.state);
    if (state >= host::kThreadStates) return void(++unknown_);
    trace::ThreadTimeRow row;
    fill(row, record);
    row.thread_id = images_.thread_at(record.pid, record.tid, row.ts_ns);
    row.state = rows_.writer.strings().intern(host::kThreadStateNames[state]);
    rows_.writer.add(row);
  }

  void take_cpu_group(const wire::CpuGroupRecord& record) {
    if (!in_time(record.ts_ns)) return;
    trace::CpuGroupRow row;
    fill(row, record);
    row.process_id = images_.process_at(record.pid, row.ts_ns);
    if (record.quota_us > 0 && record.period_us > 0)
      row.quota_cpus = static_cast<double>(record.quota_us) / static_cast<double>(record.period_us);
    rows_.writer.add(row);
  }

  void take_telemetry_device(const wire::TelemetryDeviceRecord& record) {
    constexpr std::size_t kMostDevices = 256;
    if (devices_.size() >= kMostDevices) return;
    const Uuid uuid{record.uuid_high, record.uuid_low};
    hw::Device device;
    device.kind = "gpu";
    device.name = names_.text(record.name);
    devices_[record.device] =
        uuid.known() || rows_.devices.has(device.name) ? rows_.devices.find(uuid, device, rows_.next_id) : rows_.cpu_id;
  }

  // What other programs do to a device shows in its own readings; those of processes are kept for the run's.
  void take_telemetry(const wire::TelemetryRecord& record) {
    if (!in_time(record.ts_ns)) return;
    const auto device = devices_.find(record.device);
    const hw::Metric* metric = hw::find_metric(names_.text(record.metric));
    if (device == devices_.end() || metric == nullptr) {
      ++unknown_;
      return;
    }
    trace::TelemetryRow row;
    fill(row, record, &names_);
    row.device_id = device->second;
    row.unit = rows_.writer.strings().intern(metric->unit);
    if (record.pid != 0 && !images_.knows(record.pid)) return;
    if (record.pid != 0) row.process_id = images_.process_at(record.pid, row.ts_ns);
    rows_.writer.add(row);
  }

  void take_note(const wire::NoteRecord& record) {
    if (!in_time(record.ts_ns)) return;
    rows_.writer.add(trace::NoteRow{bounded(record.ts_ns), {}, names_.name(record.subject), names_.name(record.text)});
  }

  void take_counter_window(const wire::CounterWindowRecord& record) {
    if (counters_.full()) counters_.write_older_half();
    if (!in_time(record.end_ns) || !in_time(record.begin_ns)) return counters_.dropped(record.measurement);
    const auto device = devices_.find(record.device);
    if (device == devices_.end() || record.scope != wire::CounterScope::kSample || record.end_ns < record.begin_ns) {
      ++unknown_;
      return counters_.dropped(record.measurement);
    }
    counters_.window(record, {}, {{}, {}, device->second});
  }

  void take_counter(const wire::CounterRecord& record) {
    if (counters_.full()) counters_.write_older_half();
    counters_.value(record.measurement, names_.name(record.metric), record.value);
  }

  bool in_time(std::uint64_t ts_ns) {
    if (facts_.window.is_too_old(ts_ns)) return false;  // only the end was to be kept
    if (facts_.window.holds(ts_ns)) return true;
    ++bad_times_;
    return false;
  }

  RunRows& rows_;
  HostImages& images_;
  const HostFacts& facts_;
  LogNames names_;
  LogStacks stacks_;
  CudaCounters counters_;                                               // samples of devices
  std::unordered_map<std::uint32_t, trace::ProcessUsageRow> readings_;  // the last of each pid, not yet written
  std::unordered_map<std::uint32_t, trace::Id> devices_;                // by number in the log
  std::int64_t bad_times_ = 0, unknown_ = 0;
};

Result<HostRead> ingest_host_log(const std::string& path, const HostFacts& facts, RunRows& rows,
                                 const base::Progress& progress) {
  HostRead read;
  if (!base::is_file(path)) return read;
  const auto reader = LogReader::open(path);
  if (!reader) {
    rows.ledger.add(trace::Loss::kLogUnreadable, 1, {}, reader.error().message);
    return read;
  }
  HostImages images(rows, facts);
  LLMPROF_TRY(reader->read(images, base::no_progress));
  images.finish();
  HostIngest ingest(rows, images, facts);
  LLMPROF_LET(const LogStats stats, reader->read(ingest, progress));
  ingest.finish(stats, std::string(host::kHostLogName));
  images.write_threads();
  read.root_known = images.knows(facts.info.root_pid);
  read.bytes = reader->bytes();
  return read;
}

}  // namespace llmprof::record
