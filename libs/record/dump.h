#pragma once
// A run of what a recording holds by now, made while it goes on: the logs are linked into a folder of their own and
// read there. The recording does not notice.

#include <string>

#include "base/progress.h"
#include "base/result.h"
#include "record/ingest.h"

namespace llmprof::record {

struct DumpOptions {
  std::string recording;  // name of the run being recorded, or the pid of the recorder or of a recorded process
  std::string output;     // "": the name of the recording and "-dump-N"
  bool force = false;     // replace an existing run
};

struct Dumped {
  std::string folder;
  IngestTally tally;
};

Result<Dumped> dump(const DumpOptions& options, const base::Progress& progress);

}  // namespace llmprof::record
