#pragma once
// The rows of a run, made from the logs of its capture folder while the program runs or afterwards.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "record/log/host_ingest.h"
#include "record/log/ingest.h"
#include "record/log/ledger.h"
#include "record/log/reader.h"
#include "record/run/capture.h"
#include "record/run/ingest.h"
#include "wire/format.h"

namespace llmprof::record {

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
  void look(Ledger& ledger, bool complete);

  // In the order in which they were begun, but for those that were found later. Grows only.
  const std::vector<Chain>& chains() const { return chains_; }
  std::string path(const Log& log) const { return folder_ + "/" + log.name; }
  const std::string& folder() const { return folder_; }

 private:
  using Process = std::pair<std::uint64_t, std::uint64_t>;  // pid and start ticks
  void add(Log log);

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
  RunIngest(trace::RunWriter& writer, CaptureInfo info, const std::string& capture_folder);

  Ledger& ledger() { return ledger_; }

  // Reads what the logs hold so far. `stop` is asked between blocks.
  Result<void> follow(const std::function<bool()>& stop);
  // Reads the rest and makes the last rows; the writer can be finished afterwards.
  Result<IngestTally> finish(CaptureInfo info, const IngestOptions& options, const base::Progress& progress);

 private:
  // A chain that is being read.
  struct Reading {
    std::unique_ptr<LogIngest> ingest;
    std::size_t log = 0;   // of the chain
    LogPosition position;  // in that log
    LogStats before;       // of the logs before it
    bool done = false;
  };

  void write_machine();
  void write_clock(const ClockPair& pair);
  trace::OptionalInt in_window(const std::optional<std::int64_t>& ns) const;
  trace::OptionalInt root_end() const;
  void write_silent_root();
  void write_processes();
  void look(bool complete);
  Result<void> follow_chain(const Chain& chain, Reading& reading, const std::function<bool()>& stop);
  Result<void> read_chain(const Chain& chain, Reading& reading, const base::Progress& progress);
  void begin(const Chain& chain, Reading& reading);
  void next_log(const Chain& chain, Reading& reading);
  void end(const Chain& chain, Reading& reading);
  std::uint64_t bytes_left() const;
  bool is_root(const Chain& chain) const;
  LogFacts facts(const Chain& chain) const;
  HostFacts host_facts() const;
  TimeWindow window(const wire::FileHeader& header) const;

  CaptureInfo info_;
  Ledger ledger_;
  RunRows rows_;
  CaptureLogs logs_;
  std::vector<Reading> readings_;  // by chain
  IngestTally tally_;
  std::uint64_t followed_bytes_ = 0;
};

}  // namespace llmprof::record
