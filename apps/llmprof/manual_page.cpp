#include "manual_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/strings.h"
#include "base/text_table.h"
#include "report/layout.h"

namespace llmprof::app {
namespace {

constexpr std::size_t kIndent = 2;      // of text below a heading
constexpr std::size_t kCodeIndent = 6;  // of code, and of what an option means

// "record.md" is `llmprof help record`, "../format/run.md" a file of the project.
std::string link_target(std::string_view url) {
  url = url.substr(0, url.find('#'));
  if (url.starts_with("../../")) return std::string(url.substr(6));
  if (url.starts_with("../")) return "docs/" + std::string(url.substr(3));
  if (url.ends_with(".md")) return fmt::format("llmprof help {}", url.substr(0, url.size() - 3));
  return std::string(url);
}

std::string link_text(const std::string& text, std::string_view url) {
  const std::string target = link_target(url);
  if (target.empty() || text.starts_with("llmprof ")) return text;
  return text.ends_with(".md") || text == target ? target : fmt::format("{} ({})", text, target);
}

// "[text](url)" at the front of `text`: what it says, and the bytes it takes.
std::optional<std::pair<std::string, std::size_t>> link_at(std::string_view text) {
  const std::size_t close = text.find("](");
  const std::size_t end = close == std::string_view::npos ? close : text.find(')', close);
  if (end == std::string_view::npos || text.substr(1, close - 1).find('[') != std::string_view::npos)
    return std::nullopt;
  return std::pair(link_text(plain_text(text.substr(1, close - 1)), text.substr(close + 2, end - close - 2)), end + 1);
}

// "**bold**" or "*word*" at the front; a lone star is a star.
std::optional<std::pair<std::string, std::size_t>> emphasis_at(std::string_view text) {
  const std::string_view mark = text.starts_with("**") ? "**" : "*";
  const std::size_t end = text.find(mark, mark.size());
  if (end == std::string_view::npos || end == mark.size() || text[mark.size()] == ' ' || text[end - 1] == ' ')
    return std::nullopt;
  return std::pair(plain_text(text.substr(mark.size(), end - mark.size())), end + mark.size());
}

std::string uppercase(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
  return out;
}

// "- ", "1. " at the front of a line that may be indented: the marker with its blanks; "" if it is no item.
std::string_view item_marker(std::string_view line) {
  std::size_t at = line.find_first_not_of(' ');
  if (at == std::string_view::npos) return "";
  if (line.substr(at).starts_with("- ")) return line.substr(0, at + 2);
  const std::size_t digits = at;
  while (at < line.size() && base::is_digit(line[at])) ++at;
  return at > digits && line.substr(at).starts_with(". ") ? line.substr(0, at + 2) : "";
}

std::vector<std::string> cells_of(std::string_view line) {
  std::vector<std::string> cells;
  std::string cell;
  bool code = false;
  line = base::trimmed(line);
  line.remove_prefix(1);  // the first bar
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\\' && i + 1 < line.size() && line[i + 1] == '|') {
      cell += line[++i];
    } else if (line[i] == '|' && !code) {
      cells.push_back(plain_text(base::trimmed(cell)));
      cell.clear();
    } else {
      code = code != (line[i] == '`');
      cell += line[i];
    }
  }
  return cells;
}

// The widest columns give way until the table fits; no word is broken.
std::vector<std::size_t> column_widths(const std::vector<std::vector<std::string>>& rows, std::size_t room) {
  std::vector<std::size_t> widths, least;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    least.resize(widths.size(), 0);
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], base::display_width(row[i]));
      for (const std::string_view word : base::split(row[i], ' '))
        least[i] = std::max(least[i], base::display_width(word));
    }
  }
  const auto total = [&] {
    std::size_t sum = 2 * (widths.size() - 1);
    for (const std::size_t width : widths) sum += width;
    return sum;
  };
  while (!widths.empty() && total() > room) {
    std::size_t widest = widths.size();
    for (std::size_t i = 0; i < widths.size(); ++i) {
      if (widths[i] > least[i] && (widest == widths.size() || widths[i] > widths[widest])) widest = i;
    }
    if (widest == widths.size()) break;
    --widths[widest];
  }
  return widths;
}

std::string table_text(const std::vector<std::vector<std::string>>& rows, std::size_t width) {
  const std::vector<std::size_t> widths = column_widths(rows, width - kIndent);
  std::string out;
  for (const auto& row : rows) {
    std::vector<std::vector<std::string>> lines;  // of each cell
    std::size_t most = 0;
    for (std::size_t i = 0; i < row.size(); ++i) {
      lines.emplace_back();
      const std::string text = report::wrapped(row[i], 0, widths[i]);
      for (const std::string_view line : base::split(base::trimmed(text), '\n')) lines.back().emplace_back(line);
      most = std::max(most, lines.back().size());
    }
    for (std::size_t line = 0; line < most; ++line) {
      std::string text(kIndent, ' ');
      for (std::size_t i = 0; i < lines.size(); ++i) {
        const std::string cell = line < lines[i].size() ? lines[i][line] : "";
        text += cell + std::string(widths[i] + 2 - std::min(widths[i] + 2, base::display_width(cell)), ' ');
      }
      out += text.substr(0, text.find_last_not_of(' ') + 1) + "\n";
    }
  }
  return out;
}

class Renderer {
 public:
  explicit Renderer(const PageStyle& style) : style_(style) {}

  std::string render(std::string_view markdown) {
    for (const std::string_view line : base::split(markdown, '\n')) take(line);
    flush();
    while (out_.ends_with("\n\n")) out_.pop_back();
    return std::move(out_);
  }

 private:
  void take(std::string_view line) {
    if (line.starts_with("```")) {
      flush();
      code_ = !code_;
    } else if (code_) {
      out_ += line.empty() ? "\n" : std::string(kCodeIndent, ' ') + std::string(line) + "\n";
    } else if (line.starts_with("<!--")) {
      flush();
      if (line.starts_with("<!-- options")) options_ = true;
      if (line.starts_with("<!-- /options")) options_ = false;
    } else if (base::trimmed(line).empty()) {
      flush();
      if (!out_.empty() && !out_.ends_with("\n\n")) out_ += "\n";
    } else if (line.starts_with('#')) {
      heading(line);
    } else if (base::trimmed(line).starts_with('|')) {
      if (table_.empty()) flush();
      if (!base::trimmed(line).starts_with("|-")) table_.push_back(cells_of(line));
    } else {
      words(line);
    }
  }

  void words(std::string_view line) {
    const std::string_view marker = item_marker(line);
    if (!marker.empty()) {
      flush();
      marker_ = marker;
      line.remove_prefix(marker.size());
    } else if (line.starts_with("> ")) {
      line.remove_prefix(2);
    }
    if (!text_.empty()) text_ += ' ';
    text_ += base::trimmed(line);
  }

  void heading(std::string_view line) {
    flush();
    const std::size_t level = line.find_first_not_of('#');
    const std::string text = plain_text(base::trimmed(line.substr(level)));
    const std::string shown = level == 2 ? uppercase(text) : text;
    out_ += style_.bold ? fmt::format("\033[1m{}\033[0m\n", shown) : shown + "\n";
  }

  // Ends the paragraph, item or table that is open.
  void flush() {
    if (!table_.empty()) out_ += table_text(table_, style_.width);
    table_.clear();
    if (text_.empty()) return;
    if (options_ && !marker_.empty()) {
      option();
    } else {
      const std::size_t indent = kIndent + base::display_width(marker_);
      std::string lines = report::wrapped(plain_text(text_), indent, style_.width);
      if (!marker_.empty()) lines.replace(kIndent, marker_.size(), marker_);
      out_ += lines;
    }
    text_.clear();
    marker_.clear();
  }

  // "`-o, --output NAME`: what it means": the option on a line of its own.
  void option() {
    const std::size_t end = text_.find("`: ");
    if (end == std::string::npos) return;
    const std::string head = text_.substr(1, end - 1);
    out_ += fmt::format("{}{}{}{}\n", std::string(kIndent, ' '), style_.bold ? "\033[1m" : "", head,
                        style_.bold ? "\033[0m" : "");
    out_ += report::wrapped(plain_text(text_.substr(end + 3)), kCodeIndent, style_.width);
  }

  PageStyle style_;
  std::string out_, text_, marker_;
  std::vector<std::vector<std::string>> table_;
  bool code_ = false, options_ = false;
};

}  // namespace

std::string plain_text(std::string_view markdown) {
  std::string out;
  while (!markdown.empty()) {
    std::size_t taken = 1;
    if (const std::size_t end = markdown.find('`', 1); markdown[0] == '`' && end != std::string_view::npos) {
      out += markdown.substr(1, end - 1);
      taken = end + 1;
    } else if (const auto link = markdown[0] == '[' ? link_at(markdown) : std::nullopt) {
      out += link->first;
      taken = link->second;
    } else if (const auto strong = markdown[0] == '*' ? emphasis_at(markdown) : std::nullopt) {
      out += strong->first;
      taken = strong->second;
    } else {
      out += markdown[0];
    }
    markdown.remove_prefix(taken);
  }
  return out;
}

std::string rendered_page(std::string_view markdown, const PageStyle& style) {
  return Renderer(style).render(markdown);
}

}  // namespace llmprof::app
