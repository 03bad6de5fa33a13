#pragma once
// Runs of ours into one: ids made unique, times put on the clock of the first run, devices of one machine joined. The
// clocks of a server and its client are aligned by their requests: a server cannot see a request before it was sent,
// nor its client an answer before it was made.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "trace/run.h"

namespace llmprof::importers {

// What becomes of the times of one run: t + shift_ns + drift * (t - drift_from_ns).
struct Alignment {
  std::int64_t shift_ns = 0, drift_from_ns = 0;
  double drift = 0;                       // of wall time between the two clocks; 0 on one machine
  std::string how = {};                        // in words
  std::optional<std::int64_t> error_ns = {};   // how far off it may be; nullopt: unknown
  std::int64_t at(std::int64_t ns) const;
};

// What requests that both runs tell of say about the correction of one run's times, which wall time has put on the
// other's clock already.
struct Bounds {
  std::int64_t least_ns = INT64_MIN, most_ns = INT64_MAX;
  std::int64_t requests = 0;
};
Alignment within(Alignment by_wall, const Bounds& bounds);

struct MergedRun {
  std::string name;
  std::int64_t rows = 0;
  Alignment clock;
};

struct Merged {
  std::vector<MergedRun> runs;
  std::int64_t both = 0, only_server = 0, only_client = 0;  // requests, by their names
};

// The first run is the main one: its command, environment and clock are the merged run's. `folder` must not hold a run.
Result<Merged> merge_runs(const std::vector<trace::Run>& runs, const std::string& folder,
                          const base::Progress& progress = base::no_progress);

}  // namespace llmprof::importers
