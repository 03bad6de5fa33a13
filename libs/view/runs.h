#pragma once
// The runs that are shown. They are opened at start and prepared one after the other by a thread of their own, so that
// the page can say how far that is; what is prepared never changes.

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "analyze/diff/digest.h"
#include "base/result.h"
#include "pictures/flame.h"
#include "trace/run.h"
#include "view/run_index.h"

namespace llmprof::view {

// A run with all that requests ask for. Used by one thread at a time.
struct PreparedRun {
  std::string data;                                // RunData of web/src/data.ts as text
  std::vector<std::vector<std::string>> evidence;  // [finding][evidence]: a SELECT, "" none
  RunIndex index;
};

struct RunState {
  enum class Phase : std::uint8_t { kWaiting, kWorking, kReady, kFailed };
  Phase phase = Phase::kWaiting;
  std::string what;            // is being done
  double done = 0, total = 0;  // of it; total 0: unknown
  std::string error;           // of kFailed
};

// What a comparison needs of a run.
struct Compared {
  analyze::Digest digest;
  pictures::Flame flame;
};

class Runs {
 public:
  static Result<std::unique_ptr<Runs>> open(const std::vector<std::string>& paths, const base::Progress& progress);
  ~Runs();  // asks the thread to stop, and waits for it

  void start();  // prepares them
  std::size_t size() const { return entries_.size(); }
  const std::string& name(std::size_t at) const { return entries_[at].name; }
  const std::string& folder(std::size_t at) const { return entries_[at].folder; }
  RunState state(std::size_t at) const;
  PreparedRun* prepared(std::size_t at) const;  // nullptr: not ready
  std::optional<std::string> diffs() const;     // JSON, once all runs are prepared

 private:
  struct Entry {
    std::string name, folder;
    std::optional<trace::Run> run;  // until it is prepared
    RunState state;
    std::unique_ptr<PreparedRun> prepared;
    std::optional<Compared> compared;
  };
  Runs() = default;
  void prepare_all();
  std::string compare_all() const;
  Result<std::unique_ptr<PreparedRun>> prepare(Entry& entry);
  bool note(Entry& entry, const base::ProgressUpdate& update);

  std::vector<Entry> entries_;
  mutable std::mutex mutex_;  // of state and prepared
  std::string diffs_;
  bool all_done_ = false;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace llmprof::view
