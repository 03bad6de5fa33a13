#pragma once
// Writes the tables of a run. Rows are added in any order; a table that grows past a part is sorted and written out, so
// memory stays bounded whatever the size of the run. finish() writes the rest and, last, run.json: a folder without
// run.json is not a run yet, so an interrupted writer never leaves a half run that looks whole.
//
//   LLMPROF_LET(RunWriter writer, RunWriter::create(folder));
//   writer.add(KernelRow{.id = 1, .begin_ns = …, .name = writer.strings().intern("gemm")});
//   LLMPROF_TRY(writer.finish(info));
//
// Not thread-safe. Errors of parts written on the way are kept and returned by finish().

#include <cstdint>
#include <memory>
#include <string>

#include "base/progress.h"
#include "base/result.h"
#include "trace/rows.h"
#include "trace/run_info.h"
#include "trace/strings.h"

namespace llmprof::trace {

// How many rows wait in memory before they are written; every part that is being written takes its size again.
struct WriterLimits {
  std::size_t part_bytes = 96u << 20;  // of one table: half a million kernels
  std::size_t all_bytes = SIZE_MAX;    // of all tables; the largest is written when they reach it
};

class TableSink;

// What both writers below do: rows by their type, names by the dictionary of the run.
class RowWriter {
 public:
  RowWriter(RowWriter&&) noexcept;
  RowWriter& operator=(RowWriter&&) noexcept;
  ~RowWriter();

  Strings& strings();
  template <class Row>
  void add(const Row& row) {
    add_bytes(table_of<Row>(), &row);
  }

 protected:
  // Rows go to a temporary folder, which becomes `folder` or a part of it at the end.
  RowWriter(std::string folder, std::unique_ptr<TableSink> sink);
  void add_bytes(const Table& table, const void* row);
  std::string folder_;
  std::unique_ptr<TableSink> sink_;
};

class RunWriter : public RowWriter {
 public:
  static Result<RunWriter> create(const std::string& folder, const WriterLimits& limits = {});
  // Many at once, copied; `rows` are of the table's row type.
  void add_rows(const Table& table, const void* rows, std::size_t count);
  // Writes what is left and run.json (info.files is filled in here). The writer is done afterwards.
  Result<void> finish(RunInfo info, const base::Progress& progress = base::no_progress);

 private:
  using RowWriter::RowWriter;
};

// Writes derived tables of an existing run into derived/<key>/, all or nothing (a temporary folder renamed at the end).
class DerivedWriter : public RowWriter {
 public:
  static Result<DerivedWriter> create(const std::string& run_folder, const std::string& key);
  // Bulk form for passes over millions of rows: no copy is made, `rows` lives until finish() returned.
  template <class Row>
  void add_all(const std::vector<Row>& rows) {
    add_block(table_of<Row>(), rows.data(), rows.size());
  }
  template <class Row>
  void add_all(std::vector<Row>&& rows) = delete;
  Result<void> finish();

 private:
  using RowWriter::RowWriter;
  void add_block(const Table& table, const void* rows, std::size_t count);
};

}  // namespace llmprof::trace
