#pragma once
// Frames of several files into one run: ids made unique, names and times those of the run, devices and processes
// merged, losses noted. Trusts no frame.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "importers/identities.h"
#include "importers/import.h"
#include "importers/importer.h"
#include "importers/join_calls.h"
#include "importers/protocol.h"
#include "importers/table_plan.h"
#include "trace/run_writer.h"

namespace llmprof::importers {

// The clock of a run: of the first file that has times.
struct RunClock {
  bool settled = false;
  std::optional<std::int64_t> wall_of_zero_ns;  // midnight, UTC; none: the file's own zero
  std::string words;
};

class Assembler {
 public:
  // `joins`: a log of calls is among the files.
  Assembler(trace::RunWriter& writer, bool joins);

  void begin_file(const Importer& importer, const std::string& name, std::uint64_t bytes);
  // Rows are changed in place. kError and kDone are the caller's.
  Result<void> take(const Frame& frame, std::span<std::byte> payload);
  void end_file();
  void lose(trace::Loss loss, std::int64_t count, std::string detail);  // of the current file

  // Everything that is known only at the end. What remains is RunWriter::finish().
  Imported finish();
  trace::RunInfo run_info() const;
  std::int64_t rows() const { return rows_; }

 private:
  struct File {
    const Importer* importer = nullptr;
    ImportedFile told;
    FileClock clock;
    FileFacts facts;
    bool has_times = false;
    std::optional<std::int64_t> shift_ns;
    std::int64_t first_ns = 0;  // of the row that settled the clock, on the run's
    std::optional<Error> broken;
  };
  Result<void> take_clock(const Frame& frame, std::string_view name);
  Result<void> take_facts(std::span<const std::byte> payload);
  Result<void> take_names(const Frame& frame, std::span<const std::byte> payload);
  Result<void> take_rows(const Frame& frame, std::span<std::byte> payload);
  Result<void> take_loss(const Frame& frame, std::string_view detail);
  template <class Row>
  Result<void> take_identities(const TablePlan& plan, std::span<std::byte> rows, std::size_t count);
  void keep_rows(const trace::Table& table, const std::byte* rows, std::size_t count);
  void settle_clock(std::int64_t first_ns);
  void write_sources();
  void write_losses();
  void write_clock_sync();
  trace::Name optional_name(std::string_view text);

  trace::RunWriter& writer_;
  Identities identities_;
  HeldCalls held_;
  bool joins_;
  RunClock clock_;
  std::vector<File> files_;
  FileMap map_;  // of the current file
  bool clock_given_ = false;
  std::int64_t next_base_ = 0, rows_ = 0, bad_times_ = 0, names_dropped_ = 0;
  std::size_t name_bytes_ = 0;
  std::optional<std::int64_t> first_ns_;
  Imported out_;
};

}  // namespace llmprof::importers
