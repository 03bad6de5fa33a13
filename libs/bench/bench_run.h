#pragma once
// From a sweep to a run: measures point after point into the journal, then writes the tables. Stopped at any moment, by
// Ctrl-C or by a kill, it leaves what resume_sweep() goes on with.

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "base/progress.h"
#include "base/result.h"
#include "bench/bench.h"
#include "bench/journal.h"

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

}  // namespace llmprof::bench
