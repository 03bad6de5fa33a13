#pragma once
// The rows of a run, made from the logs of its capture folder while the program runs or afterwards.

#include <fmt/format.h>
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/fields.h"
#include "base/file.h"
#include "base/numbers.h"
#include "base/progress.h"
#include "base/result.h"
#include "host/host_log.h"
#include "record/log/host_ingest.h"
#include "record/log/ingest.h"
#include "record/log/ledger.h"
#include "record/log/reader.h"
#include "record/run/capture.h"
#include "record/run/ingest.h"
#include "record/run/model_notes.h"
#include "record/watch/scrape.h"
#include "wire/format.h"

namespace llmprof::record {

// A collector that cannot make a log leaves a symbolic link instead, which takes no descriptor and no space; where it
// points to is the reason: an errno and what failed, "24 log".
inline constexpr std::string_view kOffSuffix = ".off";
inline std::string why_off(const std::string& path) {
  std::error_code ignored;
  const std::string text = std::filesystem::read_symlink(path, ignored).string();
  std::string_view what;
  const auto error = base::leading_number<int>(text, what);
  return error ? fmt::format("{}:{}", std::strerror(*error), what) : text;
}

inline constexpr std::int64_t kSlackNs = 60'000'000'000;  // clocks are read at slightly different moments
inline constexpr std::int64_t kLongestRunNs = 366 * 86'400'000'000'000;  // when the end is unknown

// The sum, or the largest time there is: headers and record.json may say anything.
inline std::int64_t later(std::int64_t time_ns, std::int64_t by_ns) {
  return time_ns > INT64_MAX - by_ns ? INT64_MAX : time_ns + by_ns;
}

inline void add(LogStats& sum, const LogStats& more) {
  base::for_each_shared_field(sum, more, [](std::uint64_t& to, std::uint64_t from) { to += from; });
}

inline bool still_runs(const wire::FileHeader& header) {
  return is_alive(static_cast<std::int64_t>(header.pid), static_cast<std::int64_t>(header.start_ticks));
}

struct Log {
  std::string name;
  wire::FileHeader header{};
};

struct Chain {
  std::vector<Log> logs;   // by segment; the first may be missing: deleted because only the end was to be kept
  bool last_image = true;  // no later chain is of the same process

  const wire::FileHeader& header() const { return logs.front().header; }
};

// The logs of a capture folder, each opened once to see whose it is, and joined to chains: the logs of one process
// image that continue each other (wire::FileHeader::segment). Can be asked again while logs are being added.
class CaptureLogs {
 public:
  explicit CaptureLogs(std::string folder) : folder_(std::move(folder)) {}

  // Takes up the logs that are new. Those that cannot be read become losses when `complete`; until then they may be in
  // the making.
  void look(Ledger& ledger, bool complete) {
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

  // In the order in which they were begun, but for those that were found later. Grows only.
  const std::vector<Chain>& chains() const { return chains_; }
  std::string path(const Log& log) const { return folder_ + "/" + log.name; }
  const std::string& folder() const { return folder_; }

 private:
  using Process = std::pair<std::uint64_t, std::uint64_t>;  // pid and start ticks
  void add(Log log) {
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

  std::string folder_;
  std::set<std::string> known_;
  std::vector<Chain> chains_;
  std::map<Process, std::size_t> latest_;  // chain of each process
};

// The rows of a run, made from its capture folder in one go or bit by bit while the program runs. What is known only at
// the end (who is still running, how the program ended, what the recorder itself saw) is asked for then.
//
//   RunIngest ingest(writer, info, capture_folder);
//   while (…the program runs…) LLMPROF_TRY(ingest.follow(stop));          // or not at all
//   LLMPROF_LET(const IngestTally tally, ingest.finish(info, options, progress));
class RunIngest {
 public:
  // Both must outlive this object. `info` is what is known by now.
  RunIngest(trace::RunWriter& writer, CaptureInfo info, const std::string& capture_folder)
      : info_(std::move(info)), rows_{writer, ledger_}, logs_(capture_folder) {
    rows_.range_event_ns = info_.range_event_ns;
    rows_.gemm_event_ns = info_.gemm_event_ns;
    write_machine();
  }

  Ledger& ledger() { return ledger_; }

  // Reads what the logs hold so far. `stop` is asked between blocks.
  Result<void> follow(const std::function<bool()>& stop) {
    look(false);
    for (std::size_t i = 0; i < readings_.size() && !stop(); ++i) {
      if (!readings_[i].done) LLMPROF_TRY(follow_chain(logs_.chains()[i], readings_[i], stop));
    }
    return {};
  }

  // Reads the rest and makes the last rows; the writer can be finished afterwards.
  Result<IngestTally> finish(CaptureInfo info, const IngestOptions& options, const base::Progress& progress) {
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
    LLMPROF_LET(const HostRead host, ingest_host_log(fmt::format("{}/{}", logs_.folder(), host::kHostLogName),
                                                     {info_, window({}), root_end()}, rows_, progress));
    tally_.log_bytes += static_cast<std::int64_t>(host.bytes);
    const auto& chains = logs_.chains();
    const bool silent = std::none_of(chains.begin(), chains.end(), [&](const Chain& chain) { return is_root(chain); });
    if (silent && !host.root_known) write_silent_root();
    write_processes();
    ingest_metrics(logs_.folder(), rows_.writer, rows_.next_id, ledger_);
    for (const NotedLoss& noted : info_.losses) ledger_.add(noted.name, noted.count, {}, noted.detail);
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

 private:
  // A chain that is being read.
  struct Reading {
    std::unique_ptr<LogIngest> ingest;
    std::size_t log = 0;   // of the chain
    LogPosition position;  // in that log
    LogStats before;       // of the logs before it
    bool done = false;
  };

  void write_machine() {
    rows_.cpu_id = rows_.next_id++;
    write_device(rows_.writer, rows_.cpu_id, info_.cpu, info_.peaks, "");
    for (const DevicePeaks& gpu : info_.gpus) rows_.devices.add(gpu.device, gpu.peaks, rows_.next_id);
    write_clock(info_.begin);
  }
  void write_clock(const ClockPair& pair) {
    if (pair.raw_ns == 0) return;
    rows_.writer.add(trace::ClockSyncRow{pair.raw_ns, pair.wall_ns, pair.error_ns, {}});
  }

  // record.json may say anything.
  trace::OptionalInt in_window(const std::optional<std::int64_t>& ns) const {
    return ns && *ns > 0 && window({}).holds(static_cast<std::uint64_t>(*ns)) ? trace::OptionalInt(*ns)
                                                                              : trace::OptionalInt();
  }

  // Recorders before this one kept only when they had done everything after it. Without a status it was not seen to
  // end: a program that was attached to goes on.
  trace::OptionalInt root_end() const {
    if (const auto known = in_window(info_.root_end_ns)) return known;
    return info_.end && info_.exit_status ? trace::OptionalInt(info_.end->raw_ns) : trace::OptionalInt();
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
    if (info_.exit_status) row.exit_status = *info_.exit_status;
    row.injected = info_.injectable;
    rows_.process_rows.push_back(row);
    ++rows_.counts.processes;
  }

  // The recorder let the program go and saw it end: its first image began then, its last one ended then. Those that
  // come from it are younger; the kernel tells their begin in hundredths of a second only.
  void write_processes() {
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
    rows_.requests.finish(rows_.writer);
    for (trace::ProcessRow& row : rows_.process_rows) {
      if (row.end_ns) row.end_ns = std::max(*row.end_ns, row.begin_ns);
      rows_.writer.add(row);
    }
  }
  void look(bool complete) {
    logs_.look(ledger_, complete);
    readings_.resize(logs_.chains().size());
  }

  // A log that another one continues is complete, and so is the last one of an image that is over. How the program
  // itself ended is known to finish() only.
  Result<void> follow_chain(const Chain& chain, Reading& reading, const std::function<bool()>& stop) {
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

  Result<void> read_chain(const Chain& chain, Reading& reading, const base::Progress& progress) {
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

  void begin(const Chain& chain, Reading& reading) {
    if (reading.ingest != nullptr) return;
    reading.ingest = std::make_unique<LogIngest>(rows_, facts(chain), chain.header());
    // Numbers are counted from 0: those before the first one there were deleted.
    ledger_.add(trace::Loss::kSegmentsDropped, chain.header().segment);
  }

  void next_log(const Chain& chain, Reading& reading) {
    add(reading.before, reading.position.stats);
    const std::uint32_t segment = chain.logs[reading.log].header.segment;
    reading.position = {};
    ++reading.log;
    ++tally_.logs;
    if (chain.logs[reading.log].header.segment != segment + 1) reading.ingest->gap();
    reading.ingest->next_log();
  }

  void end(const Chain& chain, Reading& reading) {
    reading.ingest->update(facts(chain));
    add(reading.before, reading.position.stats);
    reading.ingest->finish(reading.before);
    reading.ingest.reset();
    reading.done = true;
    tally_.log_bytes += static_cast<std::int64_t>(reading.before.bytes);
    ++tally_.logs;
  }

  std::uint64_t bytes_left() const {
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < readings_.size(); ++i) {
      if (readings_[i].done) continue;
      for (const Log& log : logs_.chains()[i].logs) bytes += base::file_bytes(logs_.path(log));
    }
    return bytes;
  }

  bool is_root(const Chain& chain) const {
    return info_.root_pid != 0 && chain.header().pid == static_cast<std::uint64_t>(info_.root_pid) &&
           chain.header().start_ticks == static_cast<std::uint64_t>(info_.root_start_ticks);
  }

  LogFacts facts(const Chain& chain) const {
    LogFacts facts;
    facts.name = chain.logs.front().name;
    facts.window = window(chain.header());
    facts.still_running = chain.last_image && still_runs(chain.header());
    if (is_root(chain) && chain.last_image && info_.exit_status) facts.exit_status = *info_.exit_status;
    return facts;
  }

  TimeWindow window(const wire::FileHeader& header) const {
    const auto created = static_cast<std::int64_t>(std::min<std::uint64_t>(header.raw_ns, INT64_MAX));
    const std::int64_t begin = info_.begin.raw_ns != 0 ? info_.begin.raw_ns : created;
    TimeWindow window;
    window.begin_ns = std::max(begin, kSlackNs) - kSlackNs;
    window.end_ns = later(begin, kLongestRunNs);
    if (info_.end) window.end_ns = later(std::max(info_.end->raw_ns, created), kSlackNs);
    if (info_.end && info_.last_ns) window.keep_from_ns = info_.end->raw_ns - *info_.last_ns;
    return window;
  }

  CaptureInfo info_;
  Ledger ledger_;
  RunRows rows_;
  CaptureLogs logs_;
  std::vector<Reading> readings_;  // by chain
  IngestTally tally_;
  std::uint64_t followed_bytes_ = 0;
};

}  // namespace llmprof::record
