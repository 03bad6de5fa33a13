#include "report/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "base/human.h"
#include "base/text_table.h"
#include "report/page.h"

namespace llmprof::report {

namespace {

constexpr std::size_t kNarrowest = 60,
                      kWidest = 240;  // narrower, tables would fall apart; wider, lines are hard to read
std::size_t columns_of_lines = 100;

}  // namespace

std::size_t line_width() { return columns_of_lines; }
void set_line_width(std::size_t columns) { columns_of_lines = std::clamp(columns, kNarrowest, kWidest); }

std::string Style::heading(std::string_view text) const {
  const std::string line = base::shorten(base::printable(text), line_width());
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
  for (std::size_t at = out.find(kNoBreak); at != std::string::npos; at = out.find(kNoBreak, at))
    out.replace(at, kNoBreak.size(), " ");
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

std::string amount_cell(std::optional<double> amount) { return amount ? base::human_count(*amount) : "-"; }

std::string grouped(std::int64_t count) {
  std::string digits = fmt::format("{}", count);
  for (std::size_t end = digits.size(); end > (count < 0 ? 4u : 3u); end -= 3) digits.insert(end - 3, ",");
  return digits;
}

std::string counted(std::int64_t count, std::string_view one) {
  return fmt::format("{} {}{}", count, one, count == 1 ? "" : one.ends_with('s') || one.ends_with("ch") ? "es" : "s");
}

namespace {

// Numbers of things: whole ones in full as long as one can read them.
std::string number(double value) {
  if (std::fabs(value) >= 1e6) return base::human_count(value);
  if (value == std::floor(value)) return fmt::format("{:.0f}", value);
  if (std::fabs(value) >= 9999.5) return base::human_count(value);
  return std::fabs(value) < 0.1 ? fmt::format("{:.3g}", value) : base::three_digits(value);
}

}  // namespace

std::string with_unit(double value, std::string_view unit) {
  if (!std::isfinite(value)) return "unknown";
  if (value < 0) return "-" + with_unit(-value, unit);
  if (unit == "s") return base::human_ns(value * 1e9);
  if (unit == "ns") return base::human_ns(value);
  if (unit == "B") return base::human_bytes(value);
  if (unit == "1") return base::human_percent(value);
  if (unit == "%") return fmt::format("{:.1f} %", value);
  if (unit == "bytes" || unit == "byte") return base::human_bytes(value);
  if (unit == "bytes/s" || unit == "byte/s") return base::human_rate(value, "B/s");
  if (unit.empty()) return number(value);
  if (unit.starts_with("B/") || unit.starts_with("FLOP") || value >= 1e6)
    return base::human_rate(value, std::string(unit).c_str());
  return fmt::format("{} {}", number(value), unit);
}

namespace {

constexpr std::array<std::string_view, 8> kBars{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr std::array<std::string_view, 8> kAscii{"_", ".", "-", "~", "=", "+", "*", "#"};

}  // namespace

std::string sparkline(const std::vector<std::int64_t>& values, std::size_t width, bool unicode, SparkRange range) {
  if (values.empty() || width == 0) return "";
  const std::size_t bars = std::min(width, values.size());
  const double whole = static_cast<double>(range.high) - static_cast<double>(range.low);
  std::string out;
  for (std::size_t bar = 0; bar < bars; ++bar) {
    const auto begin = values.begin() + static_cast<std::ptrdiff_t>(bar * values.size() / bars);
    const auto end = values.begin() + static_cast<std::ptrdiff_t>((bar + 1) * values.size() / bars);
    const double above = static_cast<double>(*std::max_element(begin, end)) - static_cast<double>(range.low);
    const double part = whole > 0 ? std::clamp(above / whole, 0.0, 1.0) : 0;
    const std::size_t level = std::min<std::size_t>(7, static_cast<std::size_t>(part * 8));
    out += unicode ? kBars[level] : kAscii[level];
  }
  return out;
}

std::string sparkline(const std::vector<std::int64_t>& values, std::size_t width, bool unicode) {
  if (values.empty()) return "";
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return sparkline(values, width, unicode, {*low, *high});
}

}  // namespace llmprof::report
