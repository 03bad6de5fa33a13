#pragma once
// Small pieces of terminal text: headings, wrapped sentences, cells.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace llmprof::report {

struct Style {
  bool colour = false;
  std::string heading(std::string_view text) const;  // bold; a blank line before it
  std::string warning(std::string_view text) const;  // red
};

// A sentence broken into lines of at most `width` columns (kWidth unless told), every line indented.
std::string wrapped(std::string_view text, std::size_t indent = 2, std::size_t width = 100);

// At most `width` columns, the end replaced by "…" if needed: of sentences the begin says most.
std::string cut_off(std::string_view text, std::size_t width);

// Cells. Unknown is "-".
std::string percent_cell(std::optional<double> fraction);       // "42.3", the unit stands in the title
std::string time_cell(std::optional<std::int64_t> ns);          // "1.53 ms"
std::string giga_cell(std::optional<double> amount);            // in units of 1e9: "93.0"
std::string amount_cell(std::optional<double> amount);          // "4.00 k", "93.0 G"
std::string counted(std::int64_t count, std::string_view one);  // "1 thread", "2 threads"; "process" -> "processes"

}  // namespace llmprof::report
