#include "record/run/run_ingest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "base/file.h"
#include "base/numbers.h"
#include "host/host_log.h"
#include "record/run/model_notes.h"

namespace llmprof::record {
namespace {

// A collector that cannot make a log leaves a symbolic link instead, which takes no descriptor and no space; where it
// points to is the reason: an errno and what failed, "24 log".
constexpr std::string_view kOffSuffix = ".off";
std::string why_off(const std::string& path) {
  std::error_code ignored;
  const std::string text = std::filesystem::read_symlink(path, ignored).string();
  std::string_view what;
  const auto error = base::leading_number<int>(text, what);
  return error ? fmt::format("{}:{}", std::strerror(*error), what) : text;
}

}  // namespace

void CaptureLogs::look(Ledger& ledger, bool complete) {
  std::vector<Log> found;
  for (const std::string& name : log_names(folder_)) {
    if (name == host::kHostLogName || known_.contains(name)) continue;
    if (name.ends_with(kOffSuffix)) {
      if (complete) ledger.add(trace::Loss::kCollectorOff, 1, {}, why_off(folder_ + "/" + name));
      continue;
    }
    const auto reader = LogReader::open(folder_ + "/" + name);
    if (reader) {
      known_.insert(name);
      found.push_back({name, reader->header()});
    } else if (complete && reader.error().code != ErrorCode::kNotFound) {  // a process may have deleted its oldest
      ledger.add(trace::Loss::kLogUnreadable, 1, {}, reader.error().message);
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Log& a, const Log& b) { return a.header.raw_ns < b.header.raw_ns; });
  for (Log& log : found) add(std::move(log));
}

void CaptureLogs::add(Log log) {
  const Process process{log.header.pid, log.header.start_ticks};
  const auto latest = latest_.find(process);
  if (latest != latest_.end()) {
    Chain& chain = chains_[latest->second];
    if (log.header.segment > chain.logs.back().header.segment) {
      chain.logs.push_back(std::move(log));
      return;
    }
    chain.last_image = false;
  }
  latest_[process] = chains_.size();
  chains_.push_back({{std::move(log)}, true});
}

namespace {

constexpr std::int64_t kSlackNs = 60'000'000'000;                 // clocks are read at slightly different moments
constexpr std::int64_t kLongestRunNs = 366 * 86'400'000'000'000;  // when the end is unknown

// The sum, or the largest time there is: headers and record.json may say anything.
std::int64_t later(std::int64_t time_ns, std::int64_t by_ns) {
  return time_ns > INT64_MAX - by_ns ? INT64_MAX : time_ns + by_ns;
}

void add(LogStats& sum, const LogStats& more) {
  sum.bytes += more.bytes;
  sum.blocks += more.blocks;
  sum.records += more.records;
  sum.missing_blocks += more.missing_blocks;
  sum.damaged_bytes += more.damaged_bytes;
  sum.torn_bytes += more.torn_bytes;
  sum.unknown_records += more.unknown_records;
}

bool still_runs(const wire::FileHeader& header) {
  return is_alive(static_cast<std::int64_t>(header.pid), static_cast<std::int64_t>(header.start_ticks));
}

}  // namespace

RunIngest::RunIngest(trace::RunWriter& writer, CaptureInfo info, const std::string& capture_folder)
    : info_(std::move(info)), rows_{writer, ledger_}, logs_(capture_folder) {
  rows_.range_event_ns = info_.range_event_ns;
  rows_.gemm_event_ns = info_.gemm_event_ns;
  write_machine();
}

void RunIngest::write_machine() {
  rows_.cpu_id = rows_.next_id++;
  write_device(rows_.writer, rows_.cpu_id, info_.cpu, info_.peaks, "");
  for (const DevicePeaks& gpu : info_.gpus) rows_.devices.add(gpu.device, gpu.peaks, rows_.next_id);
  write_clock(info_.begin);
}

void RunIngest::look(bool complete) {
  logs_.look(ledger_, complete);
  readings_.resize(logs_.chains().size());
}

Result<void> RunIngest::follow(const std::function<bool()>& stop) {
  look(false);
  for (std::size_t i = 0; i < readings_.size() && !stop(); ++i) {
    if (!readings_[i].done) LLMPROF_TRY(follow_chain(logs_.chains()[i], readings_[i], stop));
  }
  return {};
}

// A log that another one continues is complete, and so is the last one of an image that is over. How the program itself
// ended is known to finish() only.
Result<void> RunIngest::follow_chain(const Chain& chain, Reading& reading, const std::function<bool()>& stop) {
  const bool over = !chain.last_image || (!is_root(chain) && !still_runs(chain.header()));
  begin(chain, reading);
  reading.ingest->update(facts(chain));
  while (!stop()) {
    const std::uint64_t before = reading.position.offset;
    LLMPROF_TRY(follow_log(logs_.path(chain.logs[reading.log]), reading.position, *reading.ingest, stop));
    followed_bytes_ += reading.position.offset - before;
    if (stop()) return {};
    if (reading.log + 1 == chain.logs.size()) break;
    LLMPROF_LET(const LogReader rest, LogReader::open(logs_.path(chain.logs[reading.log])));
    LLMPROF_TRY(rest.read_rest(reading.position, *reading.ingest, base::no_progress));
    next_log(chain, reading);
  }
  if (!over || stop()) return {};
  LLMPROF_LET(const LogReader rest, LogReader::open(logs_.path(chain.logs[reading.log])));
  LLMPROF_TRY(rest.read_rest(reading.position, *reading.ingest, base::no_progress));
  end(chain, reading);
  return {};
}

Result<IngestTally> RunIngest::finish(CaptureInfo info, const IngestOptions& options, const base::Progress& progress) {
  info_ = std::move(info);
  look(true);
  const auto total = static_cast<double>(bytes_left());
  double done = 0;
  for (std::size_t i = 0; i < readings_.size(); ++i) {
    if (readings_[i].done) continue;
    LLMPROF_TRY(read_chain(logs_.chains()[i], readings_[i], [&](const base::ProgressUpdate& update) {
      return progress({update.what, std::min(done + update.done, total), total, update.unit});
    }));
    for (const Log& log : logs_.chains()[i].logs) done += static_cast<double>(base::file_bytes(logs_.path(log)));
  }
  LLMPROF_LET(const HostRead host,
              ingest_host_log(fmt::format("{}/{}", logs_.folder(), host::kHostLogName), host_facts(), rows_, progress));
  tally_.log_bytes += static_cast<std::int64_t>(host.bytes);
  const auto& chains = logs_.chains();
  const bool silent = std::none_of(chains.begin(), chains.end(), [&](const Chain& chain) { return is_root(chain); });
  if (silent && !host.root_known) write_silent_root();
  write_processes();
  for (const NotedLoss& noted : info_.losses) ledger_.add(noted.loss, noted.count, {}, noted.detail);
  for (const NotedText& noted : info_.notes) {
    trace::Strings& strings = rows_.writer.strings();
    rows_.writer.add(trace::NoteRow{
        .ts_ns = info_.begin.raw_ns, .subject = strings.intern(noted.subject), .text = strings.intern(noted.text)});
  }
  if (info_.end) write_clock(*info_.end);
  rows_.devices.write(rows_.writer);
  rows_.frames.finish(rows_.writer, options.read_models);
  tally_.models = info_.models;
  if (options.read_models) note_opened_models(rows_.model_files, tally_.models);
  tally_.followed_bytes = static_cast<std::int64_t>(followed_bytes_);
  tally_.losses = ledger_.write(rows_.writer, rows_.next_id);
  static_cast<RunCounts&>(tally_) = rows_.counts;
  return tally_;
}

Result<void> RunIngest::read_chain(const Chain& chain, Reading& reading, const base::Progress& progress) {
  begin(chain, reading);
  reading.ingest->update(facts(chain));
  while (true) {
    const auto reader = LogReader::open(logs_.path(chain.logs[reading.log]));
    if (reader) {
      LLMPROF_TRY(reader->read_rest(reading.position, *reading.ingest, progress));
    } else if (reader.error().code != ErrorCode::kNotFound) {  // a process that still runs deletes its oldest
      return reader.error();
    }
    if (reading.log + 1 == chain.logs.size()) break;
    next_log(chain, reading);
  }
  end(chain, reading);
  return {};
}

void RunIngest::begin(const Chain& chain, Reading& reading) {
  if (reading.ingest != nullptr) return;
  reading.ingest = std::make_unique<LogIngest>(rows_, facts(chain), chain.header());
  // Numbers are counted from 0: those before the first one there were deleted.
  ledger_.add(trace::Loss::kSegmentsDropped, chain.header().segment);
}

void RunIngest::next_log(const Chain& chain, Reading& reading) {
  add(reading.before, reading.position.stats);
  const std::uint32_t segment = chain.logs[reading.log].header.segment;
  reading.position = {};
  ++reading.log;
  ++tally_.logs;
  if (chain.logs[reading.log].header.segment != segment + 1) reading.ingest->gap();
  reading.ingest->next_log();
}

void RunIngest::end(const Chain& chain, Reading& reading) {
  reading.ingest->update(facts(chain));
  add(reading.before, reading.position.stats);
  reading.ingest->finish(reading.before);
  reading.ingest.reset();
  reading.done = true;
  tally_.log_bytes += static_cast<std::int64_t>(reading.before.bytes);
  ++tally_.logs;
}

std::uint64_t RunIngest::bytes_left() const {
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < readings_.size(); ++i) {
    if (readings_[i].done) continue;
    for (const Log& log : logs_.chains()[i].logs) bytes += base::file_bytes(logs_.path(log));
  }
  return bytes;
}

bool RunIngest::is_root(const Chain& chain) const {
  return info_.root_pid != 0 && chain.header().pid == static_cast<std::uint64_t>(info_.root_pid) &&
         chain.header().start_ticks == static_cast<std::uint64_t>(info_.root_start_ticks);
}

TimeWindow RunIngest::window(const wire::FileHeader& header) const {
  const auto created = static_cast<std::int64_t>(std::min<std::uint64_t>(header.raw_ns, INT64_MAX));
  const std::int64_t begin = info_.begin.raw_ns != 0 ? info_.begin.raw_ns : created;
  TimeWindow window;
  window.begin_ns = std::max(begin, kSlackNs) - kSlackNs;
  window.end_ns = later(begin, kLongestRunNs);
  if (info_.end) window.end_ns = later(std::max(info_.end->raw_ns, created), kSlackNs);
  if (info_.end && info_.last_ns) window.keep_from_ns = info_.end->raw_ns - *info_.last_ns;
  return window;
}

LogFacts RunIngest::facts(const Chain& chain) const {
  LogFacts facts;
  facts.name = chain.logs.front().name;
  facts.window = window(chain.header());
  facts.still_running = chain.last_image && still_runs(chain.header());
  if (is_root(chain) && chain.last_image && info_.exit_status) facts.exit_status = *info_.exit_status;
  return facts;
}

HostFacts RunIngest::host_facts() const {
  HostFacts facts;
  facts.window = window({});
  facts.root_pid = info_.root_pid;
  facts.root_executable = info_.executable;
  facts.root_arguments = fmt::format("{}", fmt::join(info_.command, " "));
  facts.root_injectable = info_.injectable;
  if (info_.exit_status) facts.root_exit_status = *info_.exit_status;
  facts.root_end_ns = root_end();
  return facts;
}

// Recorders before this one kept only when they had done everything after it.
trace::OptionalInt RunIngest::root_end() const {
  if (const auto known = in_window(info_.root_end_ns)) return known;
  return info_.end ? trace::OptionalInt(info_.end->raw_ns) : trace::OptionalInt();
}

// record.json may say anything.
trace::OptionalInt RunIngest::in_window(const std::optional<std::int64_t>& ns) const {
  return ns && *ns > 0 && window({}).holds(static_cast<std::uint64_t>(*ns)) ? trace::OptionalInt(*ns)
                                                                            : trace::OptionalInt();
}

// The recorder let the program go and saw it end: its first image began then, its last one ended then. Those that come
// from it are younger; the kernel tells their begin in hundredths of a second only.
void RunIngest::write_processes() {
  const trace::OptionalInt begin_ns = in_window(info_.root_begin_ns), end_ns = root_end();
  trace::ProcessRow *first = nullptr, *last = nullptr;
  for (trace::ProcessRow& row : rows_.process_rows) {
    if (begin_ns) row.begin_ns = std::max(row.begin_ns, *begin_ns);
    if (row.pid != info_.root_pid || info_.root_pid == 0) continue;
    if (first == nullptr || row.begin_ns < first->begin_ns) first = &row;
    if (last == nullptr || row.begin_ns >= last->begin_ns) last = &row;
  }
  if (first != nullptr && begin_ns) first->begin_ns = *begin_ns;
  if (last != nullptr && end_ns) last->end_ns = *end_ns;
  for (trace::ProcessRow& row : rows_.process_rows) {
    if (row.end_ns) row.end_ns = std::max(*row.end_ns, row.begin_ns);
    rows_.writer.add(row);
  }
}

// A program without any event makes no log; it ran all the same.
void RunIngest::write_silent_root() {
  trace::Strings& strings = rows_.writer.strings();
  trace::ProcessRow row;
  row.id = rows_.next_id++;
  row.pid = info_.root_pid;
  row.executable = strings.intern(info_.executable);
  row.arguments = strings.intern(fmt::format("{}", fmt::join(info_.command, " ")));
  row.begin_ns = info_.begin.raw_ns;
  if (info_.exit_status) row.exit_status = *info_.exit_status;
  row.injected = info_.injectable;
  rows_.process_rows.push_back(row);
  ++rows_.counts.processes;
}

void RunIngest::write_clock(const ClockPair& pair) {
  if (pair.raw_ns == 0) return;
  rows_.writer.add(trace::ClockSyncRow{pair.raw_ns, pair.wall_ns, pair.error_ns, {}});
}

}  // namespace llmprof::record
