#pragma once
// The tables of a benchmark's run.

#include <string>
#include <vector>

#include "base/result.h"
#include "bench/journal.h"

namespace llmprof::bench {

struct RunFacts {
  hw::Device device;
  std::vector<hw::Peak> peaks;
  std::vector<std::string> notes;  // Bench::notes()
};

// Writes tables and run.json into `run_folder`, replacing those of an interrupted sweep.
Result<void> write_run(const std::string& run_folder, const Sweep& sweep, const std::vector<Finished>& finished,
                       const RunFacts& facts);

}  // namespace llmprof::bench
