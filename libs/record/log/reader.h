#pragma once
// Reads one capture log (wire/format.h, docs/format/wire.md). Only what matches its checksums is handed out; what is
// damaged, torn, missing or unknown is counted. The file is mapped and given back as it is read, so memory stays small
// whatever its size.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "record/log/ledger.h"
#include "wire/decode.h"

namespace llmprof::record {

// Receives a log in its order. Views are valid during the call.
class LogSink {
 public:
  virtual ~LogSink() = default;
  virtual void define(wire::StringId id, std::string_view text) = 0;
  // Records of one kind and one thread of the log (0: the collector itself).
  virtual void receive(wire::RecordKind kind, std::uint32_t thread, std::span<const wire::Record> records) = 0;
  // Something is missing here: state carried over from before, such as open ranges, is not to be trusted.
  virtual void gap() = 0;
};

struct LogStats {
  std::uint64_t bytes = 0;
  std::uint64_t blocks = 0;
  std::uint64_t records = 0;
  std::uint64_t missing_blocks = 0;
  std::uint64_t damaged_bytes = 0;
  std::uint64_t torn_bytes = 0;
  std::uint64_t unknown_records = 0;
};

// How far a log was read.
struct LogPosition {
  std::uint64_t offset = 0;    // of the next block; 0: nothing was read
  std::uint32_t sequence = 0;  // that it should have
  LogStats stats;              // of what was read; `bytes` counts the file header too
};

class LogReader {
 public:
  // Errors: cannot be opened, not a capture log, too short for a header, or made by a newer llmprof.
  static Result<LogReader> open(const std::string& path);
  LogReader(LogReader&& other) noexcept;
  LogReader& operator=(LogReader&&) = delete;
  ~LogReader();

  // Zeros when the header is damaged (the blocks can still be read).
  const wire::FileHeader& header() const { return header_; }
  bool header_damaged() const { return header_damaged_; }
  std::uint64_t bytes() const { return file_.size; }

  // Reads the whole log. `progress` gets the bytes of this log; kInterrupted when it says no.
  Result<LogStats> read(LogSink& sink, const base::Progress& progress) const;
  // Reads what is left behind `position`, to the end.
  Result<void> read_rest(LogPosition& position, LogSink& sink, const base::Progress& progress) const;

 private:
  LogReader() = default;
  wire::Bytes file_;
  wire::FileHeader header_{};
  bool header_damaged_ = false;
};

// Reads what a log that is still being written holds behind `position`, but for its last block: the collector may take
// that one back when the disk is full, and what follows it is perhaps not complete yet. `stop` is asked between blocks.
Result<void> follow_log(const std::string& path, LogPosition& position, LogSink& sink,
                        const std::function<bool()>& stop);

// What one capture log holds, for `llmprof check LOG`.
struct LogCheck {
  std::uint32_t version = 0;
  std::int64_t pid = 0;  // 0: the file header is damaged
  bool header_damaged = false;
  bool ended = false;                                         // the process ended in order
  std::int64_t first_ns = 0, last_ns = 0;                     // of ranges, BLAS calls and GPU work; 0 if none
  std::vector<std::pair<std::string, std::int64_t>> records;  // per kind, kinds that occur
  std::int64_t names = 0;                                     // string definitions
  std::int64_t lost_names = 0;                                // used, but not defined
  std::int64_t lost_definitions = 0;                          // the same of kernel shapes, GEMM shapes and stacks
  std::vector<LossTotal> losses;                              // as the collector wrote them
  LogStats stats;

  bool whole() const {
    return !header_damaged && stats.missing_blocks == 0 && stats.damaged_bytes == 0 && stats.torn_bytes == 0;
  }
};

Result<LogCheck> check_log(const std::string& path, const base::Progress& progress = base::no_progress);

// True if the file begins as a capture log does.
bool is_log(const std::string& path);

}  // namespace llmprof::record
