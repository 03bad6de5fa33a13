#pragma once
// Measured times of a model's operators on a device: read from files, or filled point by point. One degree of tensor
// parallelism; times are of one rank and of one layer. Not thread-safe while it is filled.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "predict/tables/grid.h"
#include "predict/tables/skew.h"

namespace llmprof::predict {

// The tables that there can be. `dense` and `per_sequence` hold several operators, told apart by their column `layer`.
struct TableKind {
  std::string_view name;               // as file names contain it
  std::string_view label;              // the column that names the operator; "": the table is of one, named `name`
  std::vector<std::string_view> axes;  // columns
  std::string_view value = "time_us";  // column
  Blend blend = Blend::kOverhead;
  std::array<bool, Grid::kMaxAxes> apart = {};
};
std::span<const TableKind> table_kinds();
const TableKind* find_table_kind(std::string_view name);  // nullptr: no such table
// The kind of table that a file of this name holds; nullptr: none.
const TableKind* kind_of_file(std::string_view file_name);

// Where tables came from, and what became of their rows.
struct TableFile {
  std::string path;  // below the folder
  std::string kind;
  std::int64_t rows = 0;
};
struct TableSource {
  std::string folder;  // "" if not read from one
  std::vector<TableFile> files;
  std::int64_t tensor = 0;     // degree of tensor parallelism that the names of the files say; 0: none
  bool whole_experts = false;  // the table of experts is of degree 1, the others are not
  // As meta.json beside the tables says it; "" unknown.
  std::string device, model, engine;
  std::vector<std::string> unknown_layers;  // operators that no part of a model is looked up by
  std::int64_t unknown_rows = 0;
};

class OperatorTables {
 public:
  // A measured point. An operator of a kind's table has that kind's axes, in their order; other names get one axis. An
  // error says why the point cannot be one: a time that is not finite and positive, a negative or infinite place.
  Result<void> add(const TableKind& kind, std::string_view op, std::span<const double> at, double ns);
  // The same by the operator's name alone: "qkv_proj" (tokens), "lm_head" (sequences), "attention", "moe", "all_reduce"
  // (bytes) or "all_reduce_tokens".
  Result<void> add(std::string_view op, std::span<const double> at, double ns);

  bool empty() const { return grids_.empty(); }
  Grid* find(std::string_view op);  // nullptr: not measured
  const Grid* find(std::string_view op) const;
  std::vector<std::string> operators() const;

  SkewFit skew;
  TableSource source;

 private:
  std::map<std::string, Grid, std::less<>> grids_;
};

// Rows of one file, by the names of its columns, in whatever format they come: what CSV and Parquet share.
class TableRows {
 public:
  static constexpr std::int64_t kMaxRows = 4'000'000;

  // `where` names the file in errors; `tables` must outlive this.
  TableRows(const TableKind& kind, std::string where, OperatorTables& tables);
  // Columns in any order; more than are needed are passed over. One that is missing is an error.
  Result<void> header(std::span<const std::string_view> columns);
  // Cells in the order of the columns. `line` names the row in errors.
  Result<void> row(std::span<const std::string_view> cells, std::int64_t line);
  std::int64_t rows() const { return rows_; }

 private:
  Result<void> skew_row(std::span<const std::string_view> cells, std::int64_t line);
  Result<double> number(std::span<const std::string_view> cells, std::size_t column, std::int64_t line) const;

  const TableKind& kind_;
  std::string where_;
  OperatorTables& tables_;
  std::vector<std::size_t> places_;  // of the label (if there is one), the axes, the value
  std::vector<std::string_view> wanted_;
  std::size_t columns_ = 0;
  std::int64_t rows_ = 0;
};

}  // namespace llmprof::predict
