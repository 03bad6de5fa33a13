#pragma once
// The recorder's own log to rows: what processes used, samples of their stacks, and the processes and threads that no
// capture log knows. The log is read twice: the processes of it first, because a reading may stand before the record
// that says which program it was.

#include <cstdint>

#include "record/log/ingest.h"
#include "record/run/capture.h"

namespace llmprof::record {

// What the recorder knows about the run.
struct HostFacts {
  const CaptureInfo& info;
  TimeWindow window;
  trace::OptionalInt root_end_ns;
};

// Reads the recorder's log of a capture folder, if there is one. Afterwards `rows` holds a row for every process.
struct HostRead {
  bool root_known = false;  // a row for the root was written or is of a capture log
  std::uint64_t bytes = 0;
};
Result<HostRead> ingest_host_log(const std::string& path, const HostFacts& facts, RunRows& rows,
                                 const base::Progress& progress);

}  // namespace llmprof::record
