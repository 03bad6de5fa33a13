#include "report/layout.h"

#include <fmt/format.h>

#include "base/human.h"
#include "base/text_table.h"
#include "report/page.h"

namespace llmprof::report {

std::string Style::heading(std::string_view text) const {
  const std::string line = base::shorten(base::printable(text), kWidth);
  return colour ? "\n\x1b[1m" + line + "\x1b[0m\n" : "\n" + line + "\n";
}

std::string Style::warning(std::string_view text) const {
  return colour ? "\x1b[31m" + std::string(text) + "\x1b[0m" : std::string(text);
}

std::string wrapped(std::string_view text, std::size_t indent, std::size_t width) {
  const std::string clean = base::printable(text);
  std::string out, line;
  const auto flush = [&] {
    if (!line.empty()) out += std::string(indent, ' ') + line + "\n";
    line.clear();
  };
  for (std::size_t begin = 0; begin < clean.size();) {
    const std::size_t end = std::min(clean.find(' ', begin), clean.size());
    const std::string word = base::shorten(std::string_view(clean).substr(begin, end - begin), width - indent);
    if (!line.empty() && indent + base::display_width(line) + 1 + base::display_width(word) > width) flush();
    if (!word.empty()) line += line.empty() ? word : " " + word;
    begin = end + 1;
  }
  flush();
  return out;
}

std::string cut_off(std::string_view text, std::size_t width) {
  if (base::display_width(text) <= width) return std::string(text);
  std::string out;
  std::size_t columns = 0;
  for (const char c : text) {
    const bool begins = (static_cast<unsigned char>(c) & 0xC0) != 0x80;  // a character
    if (begins && ++columns >= width) break;
    out += c;
  }
  return out + "…";
}

std::string percent_cell(std::optional<double> fraction) {
  if (!fraction) return "-";
  const double percent = *fraction * 100;
  return percent > 0 && percent < 0.05 ? "<0.1" : fmt::format("{:.1f}", percent);
}

std::string time_cell(std::optional<std::int64_t> ns) { return ns ? base::human_ns(static_cast<double>(*ns)) : "-"; }

std::string giga_cell(std::optional<double> amount) {
  if (!amount) return "-";
  if (*amount == 0) return "0";
  return *amount > 0 && *amount < 0.005e9 ? "<0.01" : base::three_digits(*amount * 1e-9);
}

std::string amount_cell(std::optional<double> amount) { return amount ? base::human_count(*amount) : "-"; }

std::string counted(std::int64_t count, std::string_view one) {
  return fmt::format("{} {}{}", count, one, count == 1 ? "" : one.ends_with('s') || one.ends_with("ch") ? "es" : "s");
}

}  // namespace llmprof::report
