#pragma once
// What becomes of the rows of one file in one table: checked, then given the ids, names and times of the run. Column by
// column over a batch, because per row there are only tens of nanoseconds.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "trace/schema.h"

namespace llmprof::importers {

// How ids, names and times of one file become those of the run.
struct FileMap {
  std::int64_t id_base = 0;             // added to ids
  std::int64_t shift_ns = 0;            // added to times
  std::int64_t process_id = 0;          // of the run, for rows that name no process but need one
  std::vector<std::uint32_t> names{0};  // by the file's name ids
  // Ids (with the base added) that are another one in the run, because several files tell of the same thing.
  std::unordered_map<std::int64_t, std::int64_t> processes, threads, devices;
  // Told by the rows.
  std::int64_t most_id = 0;  // of the file's own ids
  bool has_times = false, uses_process = false;
  std::int64_t first_ns = 0, last_ns = 0;  // of the run's clock
};

class TablePlan {
 public:
  explicit TablePlan(const trace::Table& table);
  const trace::Table& table() const { return *table_; }
  bool shifts(std::string_view column) const;  // whether it is a moment of the file's clock
  // A row's first time, told before anything was changed; false if rows of this table have none.
  bool first_time(const std::byte* row, std::int64_t& ns) const;
  // Changes the rows in place and drops those with invalid times: returns how many are left. An error is
  // a child that lies.
  Result<std::size_t> apply(std::byte* rows, std::size_t count, FileMap& map) const;

 private:
  enum class Refers : std::uint8_t { kAny, kProcess, kThread, kDevice };
  struct Cell {
    std::uint32_t offset = 0;
    std::int32_t present = -1;  // offset of the optional's flag; -1: always there
    Refers refers = Refers::kAny;
    bool needed = false;  // 0 becomes the file's process
  };
  bool flags_are_bools(std::byte* rows, std::size_t count) const;
  Result<void> map_ids(std::byte* rows, std::size_t count, const Cell& cell, FileMap& map) const;
  Result<void> map_names(std::byte* rows, std::size_t count, std::uint32_t offset, const FileMap& map) const;
  void shift(std::byte* rows, std::size_t count, const Cell& cell, const FileMap& map, std::vector<char>& bad) const;
  void check_order(std::byte* rows, std::size_t count, const Cell& begin, const Cell& end,
                   std::vector<char>& bad) const;
  void note_times(const std::byte* rows, std::size_t count, FileMap& map) const;

  const trace::Table* table_;
  std::vector<std::uint32_t> bools_;  // bytes that must be 0 or 1
  std::vector<Cell> absent_bools_;    // may be anything where they are absent, and become 0 there
  std::vector<std::uint32_t> names_;
  std::vector<Cell> ids_, times_;
  const Cell* begin_ = nullptr;
  const Cell* end_ = nullptr;
  const Cell* launch_begin_ = nullptr;
  const Cell* launch_end_ = nullptr;
};

// By the place of the table in trace::tables(); nullptr: no importer may write it.
const TablePlan* plan_of(std::int64_t place);

}  // namespace llmprof::importers
