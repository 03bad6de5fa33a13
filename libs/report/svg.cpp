#include "report/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text_table.h"
#include "report/layout.h"

namespace llmprof::report {
namespace {

// Told apart with the common colour deficiencies, and readable on white and on near black.
constexpr std::array<std::string_view, kColours> kPalette = {"#3577c4", "#d9730d", "#2a9d6f", "#c43d52",
                                                             "#8a63c9", "#1795a5", "#a8842c", "#7b828c"};

constexpr std::string_view kLight =
    ".llmprof .page{fill:#ffffff}"
    ".llmprof text{fill:#1f2328;font:12px system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif}"
    ".llmprof .title{font-size:15px;font-weight:600}"
    ".llmprof .small{font-size:11px}"
    ".llmprof .note{fill:#5b6570}"
    ".llmprof .halo{stroke:#ffffff;stroke-width:3px;stroke-linejoin:round;paint-order:stroke}"
    ".llmprof .grid{stroke:#e3e7eb}"
    ".llmprof .axis{stroke:#8b949e}"
    ".llmprof .roof{stroke:#8b949e;fill:none;stroke-width:2}"
    ".llmprof .guide{stroke:#5b6570;stroke-dasharray:5 4}"
    ".llmprof .join{stroke:#8b949e;stroke-dasharray:2 3}";
constexpr std::string_view kDark =
    ".llmprof .page{fill:#14171a}.llmprof text{fill:#e4e8ec}.llmprof .note{fill:#9aa4ae}"
    ".llmprof .halo{stroke:#14171a}.llmprof .grid{stroke:#2c3238}.llmprof .axis{stroke:#6b747d}.llmprof "
    ".guide{stroke:#9aa4ae}";

std::string style_of(Theme theme) {
  std::string style(kLight);
  if (theme == Theme::kDark) style += kDark;
  if (theme == Theme::kAsViewer) style += fmt::format("@media(prefers-color-scheme:dark){{{}}}", kDark);
  for (std::size_t i = 0; i < kColours; ++i) {
    style +=
        fmt::format(".llmprof .s{0}{{stroke:{1};fill:none;stroke-width:2}}.llmprof .f{0}{{fill:{1}}}", i, kPalette[i]);
  }
  return style;
}

constexpr double kLegendRow = 18, kLegendKey = 20, kLegendGap = 18;

std::string legend_key(LegendKey key, std::size_t index, double x, double y) {
  const std::size_t colour = index % kColours;
  if (key == LegendKey::kMark) return svg_mark(index, x + 7, y - 4, "");
  if (key == LegendKey::kLine) return fmt::format("<path class=\"s{}\" d=\"M{:.1f} {:.1f}h15\"/>\n", colour, x, y - 4);
  return fmt::format("<rect class=\"f{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"13\" height=\"10\"/>\n", colour, x, y - 9);
}

}  // namespace

std::string svg_escaped(std::string_view text) {
  std::string out;
  for (const char c : base::printable(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

double svg_text_width(std::string_view text) { return 6.8 * static_cast<double>(base::display_width(text)); }

std::string svg_text(double x, double y, std::string_view text, Anchor anchor, std::string_view style_class) {
  static constexpr std::array<std::string_view, 3> kAnchors = {"", " text-anchor=\"middle\"", " text-anchor=\"end\""};
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\"{}{}>{}</text>\n", x, y,
                     kAnchors[static_cast<std::size_t>(anchor)],
                     style_class.empty() ? "" : fmt::format(" class=\"{}\"", style_class), svg_escaped(text));
}

std::string svg_line(double x1, double y1, double x2, double y2, std::string_view style_class) {
  return fmt::format("<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n", style_class, x1,
                     y1, x2, y2);
}

std::string svg_mark(std::size_t index, double x, double y, std::string_view tip) {
  const std::string title = tip.empty() ? "" : fmt::format("<title>{}</title>", svg_escaped(tip));
  const std::size_t colour = index % kColours;
  switch (index % 4) {
    case 0:
      return fmt::format("<circle class=\"f{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.5\">{}</circle>\n", colour, x, y,
                         title);
    case 1:
      return fmt::format("<rect class=\"f{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"6.4\" height=\"6.4\">{}</rect>\n",
                         colour, x - 3.2, y - 3.2, title);
    case 2:
      return fmt::format("<path class=\"f{}\" d=\"M{:.1f} {:.1f}l4.5 4.5l-4.5 4.5l-4.5 -4.5z\">{}</path>\n", colour, x,
                         y - 4.5, title);
    default:
      return fmt::format("<path class=\"f{}\" d=\"M{:.1f} {:.1f}l4.3 7.4h-8.6z\">{}</path>\n", colour, x, y - 4.6,
                         title);
  }
}

std::string svg_begin(int width, int height, std::string_view title, Theme theme) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"llmprof\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
      "{1}\" role=\"img\">\n<title>{2}</title>\n<style>{3}</style>\n"
      "<rect class=\"page\" width=\"{0}\" height=\"{1}\"/>\n",
      width, height, svg_escaped(title), style_of(theme));
}

std::vector<std::string> svg_lines(std::string_view text, double width) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word(text.substr(begin, end - begin));
    begin = end + 1;
    if (!lines.empty() && svg_text_width(lines.back() + " " + word) <= width) {
      lines.back() += " " + word;
    } else {
      lines.push_back(svg_text_width(word) <= width ? word : svg_fitting(word, width));
    }
  }
  return lines;
}

std::string svg_fitting(std::string_view text, double width) {
  const std::string clean = base::printable(text);
  if (svg_text_width(clean) <= width) return clean;
  const auto letters = static_cast<std::size_t>(std::max(width, 0.0) / svg_text_width("x"));
  return letters < 4 ? "" : cut_off(clean, letters);
}

SvgHead svg_head(std::string_view title, std::string_view note, const std::vector<std::string>& names,
                 const std::vector<LegendKey>& keys, int width) {
  constexpr double kTitleSize = 1.25;  // of 12 px
  SvgHead head;
  head.bottom = 7;
  for (const std::string& line : svg_lines(title, (width - 32) / kTitleSize))
    head.text += svg_text(16, head.bottom += 19, line, Anchor::kStart, "title");
  for (const std::string& line : svg_lines(note, width - 32.0)) {
    head.text += svg_text(16, head.bottom += head.bottom < 27 ? 19 : 16, line, Anchor::kStart, "note");
  }
  if (names.size() < 2) return head;
  double x = 16, y = head.bottom + 22;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string name = svg_fitting(names[i], width - 32 - kLegendKey);
    const double needed = kLegendKey + svg_text_width(name) + kLegendGap;
    if (x > 16 && x + needed > width) x = 16, y += kLegendRow;
    head.text += legend_key(keys[i], i, x, y);
    head.text += svg_text(x + kLegendKey, y, name);
    x += needed;
  }
  head.bottom = y + 4;
  return head;
}

}  // namespace llmprof::report
