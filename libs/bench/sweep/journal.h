#pragma once
// The journal of a benchmark that is not finished: NAME.llmprof/capture/bench.jsonl. Its first line is the sweep, each
// further line one finished point, forced to the disk before the next begins. A line that was cut off by a crash counts
// as not there. docs/format/bench-journal.md describes every key.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "base/result.h"
#include "bench/bench.h"
#include "bench/sweep/sweep.h"

namespace llmprof::bench {

// A sweep as it was asked for: all that --resume needs.
struct Sweep {
  std::string llmprof_version;
  std::string device;                // as asked for: "cpu", "cuda:0", ""
  std::string fingerprint;           // of the device it ran on
  std::vector<std::string> command;  // secrets redacted
  BenchOptions options;              // cache and implementation are the points'
  std::vector<Point> points;
};

struct Finished {
  std::size_t point = 0;  // index into Sweep::points
  PointResult result;
  std::int64_t begin_wall_ns = 0, end_wall_ns = 0;
};

std::string journal_path(const std::string& run_folder);

// The forms of lines; a line of the wrong form is an error that names what is wrong.
base::Json sweep_to_json(const Sweep& sweep);
Result<Sweep> sweep_from_json(const base::Json& json);
base::Json finished_to_json(const Finished& finished);
Result<Finished> finished_from_json(const base::Json& json, const Sweep& sweep);

struct OpenedJournal;

// Held open, and locked against a second llmprof, while the sweep runs.
class Journal {
 public:
  static Result<Journal> create(const std::string& run_folder, const Sweep& sweep);
  // Reads what is there and is ready for more.
  static Result<OpenedJournal> reopen(const std::string& run_folder);
  Journal(Journal&& other) noexcept;
  Journal& operator=(Journal&&) = delete;
  ~Journal();

  Result<void> append(const Finished& finished);
  // An error while an llmprof measures into this folder.
  static Result<void> check_free(const std::string& run_folder);

 private:
  Journal(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  static Result<Journal> open(const std::string& path, int flags);
  Result<void> write_line(const base::Json& line);
  int fd_;
  std::string path_;
};

struct OpenedJournal {
  Journal journal;
  Sweep sweep;
  std::vector<Finished> finished;
};

}  // namespace llmprof::bench
