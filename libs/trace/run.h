#pragma once
// An opened run: its facts, its derived tables, and SQL over both. Opening checks the format version, the size and
// checksum of every file, and the metadata of every Parquet file against trace/schema.h: foreign Parquet is refused
// before any of its values is read.
// Every table of the schema exists as a view, empty when the run has no file for it. Not thread-safe.
// Answers to our own SQL are kept (trace/answers.h): where all that is asked was asked before, no engine is started.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "trace/run_info.h"

namespace llmprof::trace {

// One value of a result. Integers of any width are kInt; DECIMAL and FLOAT are kDouble; everything else is text.
struct Value {
  enum class Type : std::uint8_t { kNull, kInt, kDouble, kBool, kText };
  Type type = Type::kNull;
  std::int64_t integer = 0;
  double real = 0;
  std::string text;

  bool is_null() const { return type == Type::kNull; }
  std::int64_t as_int() const;  // 0 when NULL; doubles are truncated
  double as_double() const;     // 0 when NULL
  std::optional<double> maybe_double() const;
  std::optional<std::int64_t> maybe_int() const;
};

struct ResultTable {
  std::vector<std::string> columns;
  std::vector<std::vector<Value>> rows;
  std::size_t column(std::string_view name) const;  // index; asserts that it is there
};

// Columns of a large result, for native passes: numbers as int64 (NULL as kNull), strings as codes into `names`.
struct Columns {
  static constexpr std::int64_t kNull = INT64_MIN;
  std::vector<std::string> names_of_columns;
  std::vector<std::vector<std::int64_t>> values;  // [column][row]
  std::vector<std::string> names;                 // code -> text, shared by all string columns; code 0 is NULL
  std::size_t rows() const { return values.empty() ? 0 : values.front().size(); }
};

// A piece of a result that may be larger than memory: the same, about 2048 rows. Doubles stand in `reals` (NULL as
// NaN), where `values` has no rows. Codes of names hold over all pieces of one result.
struct ColumnChunk : Columns {
  std::vector<std::vector<double>> reals;  // [column][row]
  std::size_t count = 0;                   // rows of this piece
};

struct QueryLimits {
  std::int64_t max_rows = -1;  // -1: all
};

using ColumnSink = std::function<void(const std::vector<std::string>& names)>;
using ChunkSink = std::function<bool(const ColumnChunk& chunk)>;     // false: no more rows are wanted
using RowSink = std::function<bool(const std::vector<Value>& row)>;  // false: no more rows are wanted

class Run {
 public:
  // `path` may be given with or without ".llmprof". The folder must hold run.json (record::open_run ingests first).
  static Result<Run> open(const std::string& path);
  Run(Run&&) noexcept;
  Run& operator=(Run&&) noexcept;
  ~Run();

  const std::string& folder() const;
  const RunInfo& info() const;

  // Our own SQL (analysis).
  Result<ResultTable> query(const std::string& sql) const;
  Result<Columns> columns(const std::string& sql) const;
  // Piece by piece, in bounded memory. `sink` must not ask this run anything.
  Result<void> column_chunks(const std::string& sql, const ChunkSink& sink) const;

  // Makes derived/<key>/ visible as views (step, attribution, …). False if it is not there or is damaged.
  Result<bool> use_derived(const std::string& key);
  // Writes the answers given so far beside the derived tables, for whoever asks the same again.
  void keep_answers();

  // A user's SQL: one SELECT, on a connection that can read this run and nothing else.
  Result<ResultTable> user_query(const std::string& sql, const QueryLimits& limits = {}) const;
  void limit_user_memory(const std::string& size);  // "2GB" unless told otherwise; nothing is spilled to disk
  // The same row by row, in bounded memory: `columns` is called once, then `row` for each row.
  Result<void> user_query_each(const std::string& sql, const ColumnSink& columns, const RowSink& row) const;
  // The same, written to `file` as Parquet by a second connection outside the locked one.
  Result<std::int64_t> user_query_to_parquet(const std::string& sql, const std::string& file) const;

 private:
  struct State;
  explicit Run(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// "x" and "x.llmprof" are the same run.
std::string run_folder(const std::string& name);

struct CheckFinding {
  std::string where;  // file or table
  std::string what;
  bool fatal = false;  // the run cannot be trusted
};
// Reads every byte: checksums, row counts, keys that point nowhere, times that run backwards.
Result<std::vector<CheckFinding>> check_run(const Run& run);

// 'text' as a SQL literal, "name" as an identifier.
std::string sql_literal(std::string_view text);
std::string sql_identifier(std::string_view name);

}  // namespace llmprof::trace
