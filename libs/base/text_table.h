#pragma once
// Plain-text tables: a header row, aligned columns, a total width that is never exceeded. Where the columns do not fit,
// those that may be left out are, then elastic ones are shortened, then the rest continues below, under the first
// column again: no column is lost.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace llmprof::base {

enum class Align : std::uint8_t { kLeft, kRight };

class TextTable {
 public:
  struct Column {
    std::string title;
    Align align = Align::kRight;
    bool elastic = false;   // shortened in the middle ("layers.…up_proj") when the table is too wide
    bool optional = false;  // left out when the table is too wide, the last one first
  };

  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void add(std::vector<std::string> cells);  // as many cells as columns
  std::size_t rows() const { return rows_.size(); }
  // Lines with '\n', each at most `width` columns wide, indented by `indent` spaces.
  std::string render(std::size_t width = 100, std::size_t indent = 2) const;

 private:
  std::vector<std::vector<std::size_t>> blocks(std::size_t width, std::size_t indent) const;  // columns of each
  std::string render_block(const std::vector<std::size_t>& shown, std::size_t width, std::size_t indent) const;
  std::size_t natural_width(std::size_t column) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// Columns a terminal uses for UTF-8 text: one per code point (we print no wide characters).
std::size_t display_width(std::string_view text);
// At most `width` columns, the middle replaced by "…" if needed.
std::string shorten(std::string_view text, std::size_t width);
// Control bytes, invalid UTF-8 and bidirectional controls made visible: names come from strangers' programs.
std::string printable(std::string_view text);

}  // namespace llmprof::base
