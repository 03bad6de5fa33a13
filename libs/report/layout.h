#pragma once
// Small pieces of terminal text: headings, wrapped sentences, cells.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace llmprof::report {

struct Style {
  bool colour = false;
  std::string heading(std::string_view text) const;  // bold; a blank line before it
  std::string warning(std::string_view text) const;  // red
};

// Columns of a line: 100, unless the program that prints says otherwise, once, before anything is laid out. Not a
// parameter of everything, as there is one terminal.
std::size_t line_width();
void set_line_width(std::size_t columns);

// A blank at which wrapped() breaks no line.
inline constexpr std::string_view kNoBreak = "\u00a0";

// Of a text that is to be seen at one glance.
inline constexpr std::size_t kScreenLines = 40;

// A sentence broken into lines of at most `width` columns, every line indented.
std::string wrapped(std::string_view text, std::size_t indent = 2, std::size_t width = line_width());

// At most `width` columns, the end replaced by "…" if needed: of sentences the begin says most.
std::string cut_off(std::string_view text, std::size_t width);

// Cells. Unknown is "-".
std::string percent_cell(std::optional<double> fraction);       // "42.3", the unit stands in the title
std::string time_cell(std::optional<std::int64_t> ns);          // "1.53 ms"
std::string amount_cell(std::optional<double> amount);          // "4.00 k", "93.0 G"
std::string grouped(std::int64_t count);                        // "1,235,814,400"
std::string counted(std::int64_t count, std::string_view one);  // "1 thread", "2 threads"; "process" -> "processes"

// Numbers of any measure as people read them.

// `value` in base units, as measures and evidence have it: with_unit(0.00206, "s") = "2.06 ms", (0.42, "1") =
// "42.0 %", (17, "") = "17".
std::string with_unit(double value, std::string_view unit);

// Values over time in one line of text.

// A row of bars between the smallest and the largest value, at most `width` of them: with more values each bar is the
// largest of several neighbours, so that no peak is lost. Without `unicode` bars are ASCII characters of growing
// weight.
std::string sparkline(const std::vector<std::int64_t>& values, std::size_t width, bool unicode = true);

// The same between two given ends; values beyond them are drawn as these.
struct SparkRange {
  std::int64_t low = 0, high = 0;
};
std::string sparkline(const std::vector<std::int64_t>& values, std::size_t width, bool unicode, SparkRange range);

}  // namespace llmprof::report
