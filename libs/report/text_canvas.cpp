#include "report/text_canvas.h"

#include <algorithm>

#include "base/text_table.h"
#include "report/dot_canvas.h"
#include "report/layout.h"
#include "report/page.h"

namespace llmprof::report {
namespace {

std::string ascii(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x80) {
      out += text[i];
    } else if (byte >= 0xC0) {
      out += text.substr(i, 3) == "…" ? '~' : '?';  // for the whole character
    }
  }
  return out;
}

// The first `width` columns of a line; escape sequences take none.
std::string cut(std::string_view line, std::size_t width) {
  std::string out;
  std::size_t column = 0;
  bool escape = false;
  for (const char c : line) {
    const bool follows = (static_cast<unsigned char>(c) & 0xC0) == 0x80;
    if (c == '\x1b') escape = true;
    if (!escape && !follows) ++column;
    if (escape || column <= width) out += c;
    if (escape && c == 'm') escape = false;
  }
  return out;
}

}  // namespace

TextCanvas sane(const TextCanvas& wanted) {
  TextCanvas canvas = wanted;
  canvas.width = std::clamp<std::size_t>(wanted.width, 40, kWidth);
  canvas.height = std::clamp<std::size_t>(wanted.height, 4, 60);
  return canvas;
}

std::string text_head(std::string_view title, std::string_view note, const TextCanvas& canvas) {
  return wrapped(title, 0, canvas.width) + wrapped(note, 2, canvas.width);
}

std::string text_legend(const std::vector<LegendEntry>& entries, const TextCanvas& canvas) {
  std::string out, line;
  std::size_t used = 0;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::string name = base::shorten(base::printable(entries[i].name), canvas.width - 10);
    const std::size_t needed = base::display_width(entries[i].key) + 1 + base::display_width(name) + 3;
    if (used > 0 && used + needed > canvas.width) out += "  " + line + "\n", line.clear(), used = 0;
    line += (line.empty() ? "" : "   ") + text_coloured(i, entries[i].key, canvas.colour) + " " + name;
    used += needed;
  }
  return line.empty() ? out : out + "  " + line + "\n";
}

std::string fitted(std::string_view text, const TextCanvas& canvas) {
  std::string out;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    out += cut(canvas.unicode ? std::string(line) : ascii(line), canvas.width) + "\n";
    begin = end + 1;
  }
  return out;
}

}  // namespace llmprof::report
