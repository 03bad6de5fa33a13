#pragma once
// Recordings of which only the end is wanted, and runs made of a recording while it goes on.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "record/run/ingest.h"

namespace llmprof::record {

// Keeps a recording of which only the end is wanted small. Processes delete their own old logs; this takes care of
// processes that are over, and of the sum of all.
class Ring {
 public:
  Ring(std::string capture_folder, std::int64_t keep_ns, std::uint64_t max_bytes);

  // About every 200 ms; CLOCK_MONOTONIC_RAW.
  void poll(std::int64_t now_ns);

  std::int64_t dropped() const { return dropped_; }  // logs of processes of which none is left

 private:
  struct File;
  std::vector<File> files() const;
  void drop(const File& file);

  std::string folder_;
  std::int64_t keep_ns_;
  std::uint64_t max_bytes_;
  std::map<std::string, std::int64_t> over_since_ns_;  // logs of processes that are over
  std::int64_t dropped_ = 0;
};

// What the name of a log says. False: it is none.
struct LogName {
  std::int64_t pid = 0, start_ticks = 0, image = 0, segment = 0;
};
bool parse_log_name(std::string_view name, LogName& out);

// A run of what a recording holds by now, made while it goes on: the logs are linked into a folder of their own and
// read there. The recording does not notice.
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
