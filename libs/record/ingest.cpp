#include "record/ingest.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <set>
#include <utility>

#include "base/file.h"
#include "base/version.h"
#include "host/host_log.h"
#include "record/capture_folder.h"
#include "record/capture_info.h"
#include "record/host_ingest.h"
#include "record/log_ingest.h"
#include "record/log_reader.h"
#include "trace/run_writer.h"

namespace llmprof::record {
namespace {

constexpr std::int64_t kSlackNs = 60'000'000'000;                 // clocks are read at slightly different moments
constexpr std::int64_t kLongestRunNs = 366 * 86'400'000'000'000;  // when the end is unknown

// A log that could be opened. It is opened again when its turn comes: there may be more logs than mappings.
struct Log {
  std::string name;
  wire::FileHeader header;
  std::uint64_t bytes = 0;
  bool last_image = true;  // no later log is of the same process
};

using Process = std::pair<std::uint64_t, std::uint64_t>;
Process process_of(const wire::FileHeader& header) { return {header.pid, header.start_ticks}; }

// A collector that cannot make a log leaves a symbolic link instead, which takes no descriptor and no space; where it
// points to is the reason: an errno and what failed, "24 log".
constexpr std::string_view kOffSuffix = ".off";
std::string why_off(const std::string& path) {
  std::error_code ignored;
  const std::string text = std::filesystem::read_symlink(path, ignored).string();
  int error = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), error);
  if (failure != std::errc{}) return text;
  return fmt::format("{}:{}", std::strerror(error), std::string_view(end, text.data() + text.size()));
}

// Logs that can be opened, in the order in which they were begun; the others become losses.
std::vector<Log> open_logs(const std::string& folder, Ledger& ledger) {
  std::vector<Log> logs;
  for (const std::string& name : log_names(folder)) {
    if (name == host::kHostLogName) continue;  // read by ingest_host_log
    if (name.ends_with(kOffSuffix)) {
      ledger.add(trace::Loss::kCollectorOff, 1, {}, why_off(folder + "/" + name));
      continue;
    }
    const auto reader = LogReader::open(folder + "/" + name);
    if (reader) {
      logs.push_back({name, reader->header(), reader->bytes()});
    } else {
      ledger.add(trace::Loss::kLogUnreadable, 1, {}, reader.error().message);
    }
  }
  std::stable_sort(logs.begin(), logs.end(),
                   [](const Log& a, const Log& b) { return a.header.raw_ns < b.header.raw_ns; });
  std::set<Process> seen;
  for (auto log = logs.rbegin(); log != logs.rend(); ++log)
    log->last_image = seen.insert(process_of(log->header)).second;
  return logs;
}

// The sum, or the largest time there is: headers and record.json may say anything.
std::int64_t later(std::int64_t time_ns, std::int64_t by_ns) {
  return time_ns > INT64_MAX - by_ns ? INT64_MAX : time_ns + by_ns;
}

TimeWindow window_of(const CaptureInfo& info, const wire::FileHeader& header) {
  const auto created = static_cast<std::int64_t>(std::min<std::uint64_t>(header.raw_ns, INT64_MAX));
  const std::int64_t begin = info.begin.raw_ns != 0 ? info.begin.raw_ns : created;
  TimeWindow window;
  window.begin_ns = std::max(begin, kSlackNs) - kSlackNs;
  window.end_ns = later(begin, kLongestRunNs);
  if (info.end) window.end_ns = later(std::max(info.end->raw_ns, created), kSlackNs);
  return window;
}

class Ingest {
 public:
  Ingest(trace::RunWriter& writer, const CaptureInfo& info) : info_(info), rows_{writer, ledger_} {}

  Ledger& ledger() { return ledger_; }

  void write_machine() {
    trace::Strings& strings = rows_.writer.strings();
    const auto optional_text = [&](const std::string& text) {
      return text.empty() ? trace::Name{} : strings.intern(text);
    };
    trace::DeviceRow device;
    device.id = rows_.cpu_id = rows_.next_id++;
    device.kind = strings.intern("cpu");
    device.name = optional_text(info_.cpu.name);
    device.chip = optional_text(info_.cpu.chip);
    device.units = info_.cpu.units;
    device.memory_bytes = info_.cpu.memory_bytes;
    device.cache_bytes = info_.cpu.cache_bytes;
    device.clock_mhz = info_.cpu.clock_mhz;
    device.driver = optional_text(info_.cpu.driver);
    rows_.writer.add(device);
    for (const hw::Peak& peak : info_.peaks) {
      rows_.writer.add(trace::PeakRow{device.id, strings.intern(peak.quantity), strings.intern(peak.type), peak.value,
                                      strings.intern(peak.unit), strings.intern(peak.source),
                                      strings.intern(peak.method)});
    }
    for (const NotedLoss& noted : info_.losses) ledger_.add(noted.loss, noted.count, {}, noted.detail);
    write_clock(info_.begin);
    if (info_.end) write_clock(*info_.end);
  }

  Result<void> read_logs(const std::string& folder, const std::vector<Log>& logs, const base::Progress& progress) {
    double total = 0;
    for (const Log& log : logs) total += static_cast<double>(log.bytes);
    for (const Log& log : logs) {
      const auto done = static_cast<double>(tally_.log_bytes);
      LLMPROF_TRY(read_log(folder, log, [&](const base::ProgressUpdate& update) {
        return progress({update.what, done + update.done, total, update.unit});
      }));
      tally_.log_bytes += static_cast<std::int64_t>(log.bytes);
      ++tally_.logs;
    }
    LLMPROF_LET(const HostRead host,
                ingest_host_log(fmt::format("{}/{}", folder, host::kHostLogName), host_facts(), rows_, progress));
    tally_.log_bytes += static_cast<std::int64_t>(host.bytes);
    const bool silent = std::none_of(logs.begin(), logs.end(), [&](const Log& log) { return is_root(log); });
    if (silent && !host.root_known) write_silent_root();
    return {};
  }

  // The last rows; the writer can be finished afterwards.
  IngestTally finish() {
    tally_.losses = ledger_.write(rows_.writer, rows_.next_id);
    tally_.records = rows_.records;
    tally_.processes = rows_.processes;
    tally_.threads = rows_.threads;
    tally_.kernels = rows_.kernels;
    tally_.gemms = rows_.kernels;  // on a CPU every kernel is a BLAS call
    tally_.ranges = rows_.ranges;
    return tally_;
  }

 private:
  Result<void> read_log(const std::string& folder, const Log& log, const base::Progress& progress) {
    LLMPROF_LET(const LogReader reader, LogReader::open(folder + "/" + log.name));
    LogIngest one(rows_, facts(log), log.header);
    LLMPROF_LET(const LogStats stats, reader.read(one, progress));
    one.finish(stats);
    return {};
  }

  bool is_root(const Log& log) const {
    return info_.root_pid != 0 && log.header.pid == static_cast<std::uint64_t>(info_.root_pid) &&
           log.header.start_ticks == static_cast<std::uint64_t>(info_.root_start_ticks);
  }

  LogFacts facts(const Log& log) const {
    LogFacts facts;
    facts.name = log.name;
    facts.window = window_of(info_, log.header);
    facts.still_running = log.last_image && is_alive(static_cast<std::int64_t>(log.header.pid),
                                                     static_cast<std::int64_t>(log.header.start_ticks));
    if (is_root(log) && log.last_image) {
      if (info_.exit_status) facts.exit_status = *info_.exit_status;
      if (info_.end) facts.end_ns = info_.end->raw_ns;
    }
    return facts;
  }

  HostFacts host_facts() const {
    HostFacts facts;
    facts.window = window_of(info_, {});
    facts.root_pid = info_.root_pid;
    facts.root_injectable = info_.injectable;
    if (info_.exit_status) facts.root_exit_status = *info_.exit_status;
    if (info_.end) facts.root_end_ns = info_.end->raw_ns;
    return facts;
  }

  // A program without any event makes no log; it ran all the same.
  void write_silent_root() {
    trace::Strings& strings = rows_.writer.strings();
    trace::ProcessRow row;
    row.id = rows_.next_id++;
    row.pid = info_.root_pid;
    row.executable = strings.intern(info_.executable);
    row.arguments = strings.intern(fmt::format("{}", fmt::join(info_.command, " ")));
    row.begin_ns = info_.begin.raw_ns;
    if (info_.end) row.end_ns = info_.end->raw_ns;
    if (info_.exit_status) row.exit_status = *info_.exit_status;
    row.injected = info_.injectable;
    rows_.writer.add(row);
    ++rows_.processes;
  }

  void write_clock(const ClockPair& pair) {
    if (pair.raw_ns == 0) return;
    rows_.writer.add(trace::ClockSyncRow{pair.raw_ns, pair.wall_ns, pair.error_ns, {}});
  }

  const CaptureInfo& info_;
  Ledger ledger_;
  RunRows rows_;
  IngestTally tally_;
};

trace::RunInfo run_info(const CaptureInfo& info) {
  trace::RunInfo run;
  run.llmprof_version = base::version();
  run.created = iso_time(info.begin.wall_ns);
  run.command = info.command;
  run.environment = info.environment.empty() ? "{}" : info.environment;
  return run;
}

std::int64_t table_bytes(const std::string& run_folder) {
  std::int64_t bytes = 0;
  const std::string folder = run_folder + "/tables";
  for (const std::string& name : base::list_directory(folder)) {
    bytes += static_cast<std::int64_t>(base::file_bytes(folder + "/" + name));
  }
  return bytes;
}

Result<IngestTally> write_tables(const std::string& run_folder, const base::Progress& progress) {
  const std::string folder = capture_folder(run_folder);
  auto info = read_capture_info(folder);
  if (!info && info.error().code == ErrorCode::kIo) return info.error();
  const CaptureInfo known = info ? *info : CaptureInfo{};
  LLMPROF_LET(trace::RunWriter writer, trace::RunWriter::create(run_folder));
  Ingest ingest(writer, known);
  if (!info) ingest.ledger().add(trace::Loss::kLogUnreadable, 1, {}, info.error().message);
  const std::vector<Log> logs = open_logs(folder, ingest.ledger());
  ingest.write_machine();
  LLMPROF_TRY(ingest.read_logs(folder, logs, progress));
  IngestTally tally = ingest.finish();
  LLMPROF_TRY(writer.finish(run_info(known), progress));
  return tally;
}

}  // namespace

Result<IngestTally> ingest(const std::string& run_folder, const IngestOptions& options,
                           const base::Progress& progress) {
  remove_tables(run_folder);  // of an ingest that was interrupted
  auto tally = write_tables(run_folder, progress);
  if (!tally) {
    if (!base::is_file(run_folder + "/run.json")) remove_tables(run_folder);
    return tally;
  }
  tally->run_bytes = table_bytes(run_folder);
  if (!options.keep_capture) remove_capture_folder(run_folder);
  return tally;
}

}  // namespace llmprof::record
