#pragma once
// From a sweep to a run: measures point after point into the journal, then writes the tables. Stopped at any moment, by
// Ctrl-C or by a kill, it leaves what resume_sweep() goes on with.

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/progress.h"
#include "base/result.h"
#include "bench/bench.h"
#include "bench/sweep/journal.h"

namespace llmprof::bench {

using OpenBench = std::function<Result<std::unique_ptr<Bench>>(const std::string& device, const BenchOptions& options)>;

struct SweepOutcome {
  std::size_t done = 0, points = 0;
  bool interrupted = false;   // the user stopped it: the run holds what there is, the journal is kept
  bool was_complete = false;  // resume: there was nothing left to measure
};

// `run_folder` must not exist, or be a run when `force`. The device is opened before anything is written.
Result<SweepOutcome> run_sweep(Sweep sweep, const std::string& run_folder, bool force, const OpenBench& open,
                               const base::Progress& progress);
// Goes on where run_sweep() was stopped. Refuses a journal of another device or another llmprof.
Result<SweepOutcome> resume_sweep(const std::string& run_folder, const OpenBench& open, const base::Progress& progress);

// How long the rest of a sweep will take: as long as the points of the same operator took, else as long as all did.

class TimeLeft {
 public:
  void expect(std::string_view op);                // a point that is still to be measured
  void done(std::string_view op, double seconds);  // one of them is
  std::optional<double> seconds() const;           // unknown until one is

 private:
  struct Pace {
    double spent_seconds = 0;
    int done = 0, left = 0;
  };
  std::map<std::string, Pace, std::less<>> paces_;
};

}  // namespace llmprof::bench
