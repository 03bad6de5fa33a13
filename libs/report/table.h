#pragma once
// Described tables (analyze/tables.h) drawn for the terminal and as CSV, and the JSON of a report held to its
// descriptions: keys in the order of the description, nothing that is not described. The page draws the same
// descriptions with web/src/described.tsx.

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/tables.h"
#include "base/fields_json.h"
#include "report/layout.h"

namespace llmprof::report {

// What the description of `path` names of `all`, an object or an array of them, and of what lies in it.
base::Json described(std::string_view path, const base::Json& all);
template <class T>
base::Json described_fields(std::string_view path, const T& value) {
  return described(path, base::fields_json(value));
}

// "coverage.gpu_ns" in an object; null where there is nothing. What follows "[" or "#" does not count.
const base::Json& value_at(const base::Json& object, std::string_view path);
std::string text_at(const base::Json& object, std::string_view path);  // "" where it is null

// The descriptions of a report, for whoever draws its JSON: {"kernels[]": {"title", "columns": […], "notes", …}}. With
// a report only those of what it holds, and of these only what is said.
base::Json descriptions_json(const base::Json* report = nullptr);

using Flags = std::set<std::string, std::less<>>;

class TableText {
 public:
  // `report` answers the {places} in notes. `flags` are what columns ask for ("gpu").
  TableText(const base::Json& report, Flags flags = {}, std::size_t top = SIZE_MAX, std::size_t indent = 2,
            std::size_t width = line_width())
      : report_(report), flags_(std::move(flags)), top_(top), indent_(indent), width_(width) {}

  // Title and at most top rows, then how many more there are. A key that a row does not have leaves its cell empty.
  std::string rows(std::string_view path, const base::Json& rows) const { return this->rows(path, rows, top_); }
  // Columns before and behind the described ones, where they depend on the rows (the sizes that a sweep varies).
  using Columns = std::vector<analyze::ColumnDescription>;
  std::string rows(std::string_view path, const base::Json& rows, std::size_t top, const Columns& before = {},
                   const Columns& behind = {}) const;
  std::string above(std::string_view path) const;
  std::string notes(std::string_view path) const;
  std::string title(std::string_view path) const;
  // The rows that the report has there, with title and notes; "" if there are none.
  std::string section(std::string_view path, const Style& style) const;
  const base::Json& report() const { return report_; }

 private:
  bool applies(const std::string& only_if, const std::string& unless) const;
  std::optional<std::string> if_applies(std::string_view line) const;  // "(if gpu) …" without the condition
  std::string lines(const std::vector<std::string>& all) const;
  std::string filled(std::string_view text) const;

  const base::Json& report_;
  Flags flags_;
  std::size_t top_, indent_, width_;
};

bool is_text(const analyze::ColumnDescription& column);  // aligned to the left

// With a header line; every described column, or those of these keys ("time.mean_ns"). Unknown is an empty cell.
std::string to_csv(std::string_view path, const base::Json& rows);
std::string to_csv(const std::vector<std::string>& keys, const base::Json& rows);

}  // namespace llmprof::report
