#pragma once
// The descriptions of everything that reports say in rows and columns. They are files of tables/, in Markdown: what
// `report --json` calls an object, its title, its columns, what stands below it, and the SQL that its rows come from.
// Terminal, JSON, CSV, the page and docs/format/json.md are made from them, so that a number has its name, unit, title
// and meaning in one place.
//
//   ## kernels[]: Kernels by GPU time
//   Kernels of GPUs, most time first.                     (the meaning)
//   | key | title | format | meaning |
//   |---|---|---|---|
//   | time_ns | time | ns ~estimated_ns | Durations of its executions, added up. |
//   - columns of: efficiency                              (those of a table above)
//   - order: time_ns                                      (of the terminal, highest first)
//   - rows: kernels                                       ("12 more kernels")
//   - title: (if gpu) Kernels by time                     (another one)
//   - above: What a reader needs before the rows.
//   - note: GPU %: of {coverage.gpu_ns}, the durations of all kernels added up.
//   ```sql kernels                                      (a question: analyze/questions.h)
//   SELECT …
//   ```
//
// A column without a title is in the JSON, not in the terminal. Where the terminal shows rows in several tables, each
// is a view: "## stages[]#efficiency: Efficiency" with key and title of the columns that it shows, "work.flops" of an
// object inside the rows. A format is one of report/table.cpp with its unit, then words: "~KEY" an estimate if KEY is
// not 0, "±KEY" KEY is its error, "of KEY" the denominator, "wide" the column that gets narrower where space is short,
// "nonzero" 0 is unknown, "if FLAG" and "unless FLAG" only then, "=PLACE" where the struct has it ("=floor.ns"), if
// that is not the key, "terminal" made of other columns and not in the JSON, "left" aligned so, "optional" shown where
// the terminal is wide enough. A line may begin with
// "(if FLAG)" or "(unless FLAG)".
//
// Paths of `report --json` begin with one of its keys, those of other documents with their schema:
// "llmprof.diff.rows[]".

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace llmprof::analyze {

struct ColumnDescription {
  std::string key, title;
  std::string format, unit;  // "amount" "FLOP/s"
  std::string of;            // of a fraction: its denominator
  std::string estimate;      // key of what is estimated of it
  std::string error;         // key of its error
  std::string only_if, unless;
  std::string place;  // in the JSON of the struct, where that is not the key: "floor.ns"
  bool wide = false, nonzero = false, terminal = false, left = false, optional = false;
  std::string meaning;
};

struct TableDescription {
  std::string path;  // "kernels[]", "telemetry.stages[]"; without "[]" a single object
  std::string title, meaning, rows;
  std::string order;  // key by which the terminal sorts, highest first; "" as they come
  std::vector<ColumnDescription> columns;
  std::vector<std::string> titles;        // instead of the title, each with its condition
  std::vector<std::string> above, notes;  // lines above and below the rows

  const ColumnDescription* column(std::string_view key) const;
};

const std::vector<TableDescription>& table_descriptions();        // by file, in the order of their text
const TableDescription* find_description(std::string_view path);  // nullptr if there is none
Result<std::vector<TableDescription>> parse_descriptions(std::string_view markdown, std::string_view file);

}  // namespace llmprof::analyze
