#pragma once
// Capture logs and record.json to the tables of a run. run.json is written last and capture/ is deleted after it, so
// an ingest that was interrupted at any point can be done again.

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "record/log/ledger.h"
#include "record/run/capture.h"
#include "trace/run_info.h"

namespace llmprof::record {

struct IngestTally : RunCounts {
  std::int64_t logs = 0;
  std::int64_t log_bytes = 0;
  std::int64_t followed_bytes = 0;  // of these, read while the program ran
  std::int64_t run_bytes = 0;       // of the tables
  std::vector<LossTotal> losses;
  std::vector<trace::NotedModel> models;  // for run.json
};

struct IngestOptions {
  bool keep_capture = false;
  // Read the files that the logs name: of models, and of code, for the functions of native frames. Only for logs of
  // our own that were just made: an untrusted log must not decide what we open.
  bool read_models = false;
};

// The caller holds the CaptureLock of the run.
Result<IngestTally> ingest(const std::string& run_folder, const IngestOptions& options, const base::Progress& progress);

// What run.json says about a recording.
trace::RunInfo run_info(const CaptureInfo& info, const IngestTally& tally);
// The steps of ingest() behind the writing of the tables: cleans up.
Result<IngestTally> complete_ingest(const std::string& run_folder, const IngestOptions& options,
                                    Result<IngestTally> tally);

// Reads the logs while the program runs, on a thread of least priority, so that little is left to do when the
// program has ended. Does nothing until enough is waiting: a short recording never pays for it. Logs stay where they
// are until run.json is written; if anything goes wrong here they are read again from the beginning.
inline constexpr std::uint64_t kLiveIngestBytes = 16u << 20;  // what must be waiting for it to begin

class LiveIngest {
 public:
  // $LLMPROF_LIVE_INGEST_BYTES, else kLiveIngestBytes.
  explicit LiveIngest(std::string run_folder);
  ~LiveIngest();
  LiveIngest(const LiveIngest&) = delete;
  LiveIngest& operator=(const LiveIngest&) = delete;

  // About every 200 ms while the program runs, from the thread that waits for it. `info` is what is known by now.
  void poll(const CaptureInfo& info);

  // The program has ended and record.json says how. Reads the rest. As ingest() otherwise.
  Result<IngestTally> finish(const CaptureInfo& info, const IngestOptions& options, const base::Progress& progress);

 private:
  struct State;
  void work();
  void stop();

  std::string run_folder_;
  std::uint64_t begin_at_bytes_;
  std::atomic<bool> stopping_{false};
  std::unique_ptr<State> state_;  // of the thread; of the caller once it has ended
  std::thread thread_;
};

}  // namespace llmprof::record
