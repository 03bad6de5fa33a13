#pragma once
// Capture logs and record.json to the tables of a run. run.json is written last and capture/ is deleted after it, so
// an ingest that was interrupted at any point can be done again.

#include <cstdint>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "record/capture_info.h"
#include "record/ledger.h"
#include "trace/run_info.h"

namespace llmprof::record {

struct IngestTally {
  std::int64_t logs = 0;
  std::int64_t log_bytes = 0;
  std::int64_t followed_bytes = 0;  // of these, read while the program ran
  std::int64_t run_bytes = 0;       // of the tables
  std::int64_t records = 0;         // in the logs
  std::int64_t processes = 0;
  std::int64_t threads = 0;
  std::int64_t kernels = 0;
  std::int64_t gemms = 0;
  std::int64_t graph_launches = 0;  // of CUDA
  std::int64_t ranges = 0;
  std::vector<LossTotal> losses;
  std::vector<trace::NotedModel> models;  // for run.json
};

struct IngestOptions {
  bool keep_capture = false;
  // Read the files that the logs name: of models, and of code, for the functions of native frames. Only for logs of
  // our own that were just made: a stranger's log must not decide what we open.
  bool read_models = false;
};

// The caller holds the CaptureLock of the run.
Result<IngestTally> ingest(const std::string& run_folder, const IngestOptions& options, const base::Progress& progress);

// What run.json says about a recording.
trace::RunInfo run_info(const CaptureInfo& info, const IngestTally& tally);
// The steps of ingest() behind the writing of the tables: cleans up.
Result<IngestTally> complete_ingest(const std::string& run_folder, const IngestOptions& options,
                                    Result<IngestTally> tally);

}  // namespace llmprof::record
