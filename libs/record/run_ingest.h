#pragma once
// The rows of a run, made from its capture folder in one go or bit by bit while the program runs. What is known only at
// the end (who is still running, how the program ended, what the recorder itself saw) is asked for then.
//
//   RunIngest ingest(writer, info, capture_folder);
//   while (…the program runs…) LLMPROF_TRY(ingest.follow(stop));          // or not at all
//   LLMPROF_LET(const IngestTally tally, ingest.finish(info, options, progress));

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "record/capture_info.h"
#include "record/capture_logs.h"
#include "record/host_ingest.h"
#include "record/ingest.h"
#include "record/log_ingest.h"
#include "record/log_reader.h"

namespace llmprof::record {

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
