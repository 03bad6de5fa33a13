#pragma once
// Reads the logs while the program runs, on a thread of least priority, so that little is left to do when the
// program has ended. Does nothing until enough is waiting: a short recording never pays for it. Logs stay where they
// are until run.json is written; if anything goes wrong here they are read again from the beginning.

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "base/progress.h"
#include "record/capture_info.h"
#include "record/ingest.h"

namespace llmprof::record {

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
