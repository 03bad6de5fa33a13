#include "record/host_ingest.h"

#include <algorithm>

#include "base/file.h"
#include "host/host_log.h"
#include "hw/telemetry_metrics.h"

namespace llmprof::record {
namespace {

std::int64_t number(std::uint64_t value) {
  return static_cast<std::int64_t>(std::min<std::uint64_t>(value, INT64_MAX / 4));
}

trace::OptionalInt unless_unreadable(std::uint64_t value) {
  return value == host::kUnreadable ? trace::OptionalInt() : number(value);
}

}  // namespace

HostIngest::HostIngest(RunRows& rows, HostImages& images, const HostFacts& facts)
    : rows_(rows),
      images_(images),
      window_(facts.window),
      root_pid_(facts.root_pid),
      root_end_ns_(facts.root_end_ns),
      names_(rows.writer.strings()),
      stacks_(rows, names_),
      counters_(rows.writer, rows.next_id) {}

void HostIngest::receive(wire::RecordKind kind, std::uint32_t, std::span<const wire::Record> records) {
  for (const wire::Record& record : records) take(kind, record);
}

void HostIngest::take(wire::RecordKind kind, const wire::Record& record) {
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

bool HostIngest::in_time(std::uint64_t ts_ns) {
  if (window_.is_too_old(ts_ns)) return false;  // only the end was to be kept
  if (window_.holds(ts_ns)) return true;
  ++bad_times_;
  return false;
}

// The last numbers of the program are read after its end: they are those of its end.
std::int64_t HostIngest::reading_ns(std::uint32_t pid, std::uint64_t ts_ns) const {
  const std::int64_t time_ns = number(ts_ns);
  return root_end_ns_ && static_cast<std::int64_t>(pid) == root_pid_ ? std::min(time_ns, *root_end_ns_) : time_ns;
}

void HostIngest::take_usage(const wire::UsageRecord& record) {
  if (!in_time(record.ts_ns)) return;
  const auto [found, first] = readings_.try_emplace(record.pid);
  trace::ProcessUsageRow& row = found->second;
  if (!first) rows_.writer.add(row);
  row = {};
  row.ts_ns = reading_ns(record.pid, record.ts_ns);
  row.process_id = images_.process_at(record.pid, row.ts_ns);
  row.rss_bytes = number(record.rss_bytes);
  row.threads = record.threads;
  row.user_ns = number(record.user_ns);
  row.system_ns = number(record.system_ns);
  row.minor_faults = number(record.minor_faults);
  row.major_faults = number(record.major_faults);
}

// These come less often: they join the reading before them.
void HostIngest::take_io(const wire::IoRecord& record) {
  if (!in_time(record.ts_ns)) return;
  const auto found = readings_.find(record.pid);
  if (found == readings_.end()) return;
  trace::ProcessUsageRow& row = found->second;
  row.read_bytes = unless_unreadable(record.read_bytes);
  row.written_bytes = unless_unreadable(record.written_bytes);
  row.voluntary_switches = number(record.voluntary_switches);
  row.involuntary_switches = number(record.involuntary_switches);
  if (record.peak_rss_bytes != 0) row.peak_rss_bytes = number(record.peak_rss_bytes);
}

void HostIngest::take_sample(const wire::SampleRecord& record) {
  if (!in_time(record.ts_ns)) return;
  trace::SampleRow row;
  row.id = rows_.next_id++;
  row.ts_ns = number(record.ts_ns);
  row.thread_id = images_.thread_at(record.pid, record.tid, row.ts_ns);
  row.stack_id = stacks_.id(record.stack);
  row.truncated = record.truncated != 0;
  row.weight_ns = number(record.weight_ns);
  rows_.writer.add(row);
}

void HostIngest::take_telemetry_device(const wire::TelemetryDeviceRecord& record) {
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
void HostIngest::take_telemetry(const wire::TelemetryRecord& record) {
  if (!in_time(record.ts_ns)) return;
  const auto device = devices_.find(record.device);
  const hw::Metric* metric = hw::find_metric(names_.text(record.metric));
  if (device == devices_.end() || metric == nullptr) {
    ++unknown_;
    return;
  }
  trace::TelemetryRow row;
  row.ts_ns = number(record.ts_ns);
  row.device_id = device->second;
  row.metric = names_.name(record.metric);
  row.value = record.value;
  row.unit = rows_.writer.strings().intern(metric->unit);
  if (record.pid != 0 && !images_.knows(record.pid)) return;
  if (record.pid != 0) row.process_id = images_.process_at(record.pid, row.ts_ns);
  rows_.writer.add(row);
}

void HostIngest::take_note(const wire::NoteRecord& record) {
  if (!in_time(record.ts_ns)) return;
  rows_.writer.add(trace::NoteRow{number(record.ts_ns), {}, names_.name(record.subject), names_.name(record.text)});
}

void HostIngest::take_counter_window(const wire::CounterWindowRecord& record) {
  if (counters_.full()) counters_.write_older_half();
  if (!in_time(record.end_ns) || !in_time(record.begin_ns)) return counters_.dropped(record.measurement);
  const auto device = devices_.find(record.device);
  if (device == devices_.end() || record.scope != wire::CounterScope::kSample || record.end_ns < record.begin_ns) {
    ++unknown_;
    return counters_.dropped(record.measurement);
  }
  counters_.window(record, {}, {{}, {}, device->second});
}

void HostIngest::take_counter(const wire::CounterRecord& record) {
  if (counters_.full()) counters_.write_older_half();
  counters_.value(record.measurement, names_.name(record.metric), record.value);
}

void HostIngest::finish(const LogStats& stats, const std::string& log_name) {
  for (const auto& [pid, row] : readings_) rows_.writer.add(row);
  counters_.write_all();
  counters_.add_losses(rows_.ledger, {});
  unknown_ += counters_.unknown();
  rows_.records += static_cast<std::int64_t>(stats.records);
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
  read.root_known = images.knows(facts.root_pid);
  read.bytes = reader->bytes();
  return read;
}

}  // namespace llmprof::record
