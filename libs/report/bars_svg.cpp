#include <fmt/format.h>

#include <algorithm>

#include "base/text_table.h"
#include "report/bars.h"
#include "report/svg.h"

namespace llmprof::report {
namespace {

constexpr double kRow = 26, kBarHeight = 16;
constexpr std::size_t kLabelLetters = 44;  // longer labels are shortened in the middle

struct Area {
  double left, right, top;
  const AxisMap& axis;
  double x(double value) const { return left + axis.position(value) * (right - left); }
};

std::string stretch_of(const Bars& bars, const Bar& bar, const Stretch& stretch, double y, const Area& area) {
  const double from = std::min(area.x(stretch.begin), area.x(stretch.end));
  const double to = std::max(area.x(stretch.begin), area.x(stretch.end));
  const std::string kind = stretch.kind < bars.kinds.size() ? bars.kinds[stretch.kind] + ": " : "";
  const std::string tip =
      bar.label + ": " + kind +
      axis_value(bars.axis, stretch.end > stretch.begin ? stretch.end - stretch.begin : stretch.begin - stretch.end);
  return fmt::format(
      "<rect class=\"f{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.0f}\"><title>{}</title></rect>\n",
      stretch.kind % kColours, from, y, std::max(to - from, 1.0), kBarHeight, svg_escaped(tip));
}

std::string grid(const Bars& bars, double bottom, const Area& area) {
  std::string out;
  double free_from = 0;
  for (const Tick& tick : area.axis.ticks()) {
    const double x = area.x(tick.value), half = svg_text_width(tick.label) / 2;
    out += svg_line(x, area.top, x, bottom, "grid");
    if (x - half < free_from) continue;
    out += svg_text(x, bottom + 17, tick.label, Anchor::kMiddle);
    free_from = x + half + 8;
  }
  return out + svg_line(area.left, bottom, area.right, bottom, "axis") +
         svg_text((area.left + area.right) / 2, bottom + 37, axis_title(bars.axis), Anchor::kMiddle, "note");
}

std::string rows(const Bars& bars, const Area& area) {
  std::string out;
  for (std::size_t i = 0; i < bars.bars.size(); ++i) {
    const Bar& bar = bars.bars[i];
    const double y = area.top + kRow * static_cast<double>(i) + (kRow - kBarHeight) / 2;
    out += svg_text(area.left - 9, y + 12, base::shorten(bar.label, kLabelLetters), Anchor::kEnd);
    for (const Stretch& stretch : bar.stretches) {
      if (!drawable(stretch, area.axis)) continue;
      if (stretch.begin != stretch.end) out += stretch_of(bars, bar, stretch, y, area);
      // A dotted line from where this one ends to the next, which begins there.
      const bool falls = i + 1 < bars.bars.size() && bar.stretches.size() == 1 && !bars.bars[i + 1].stretches.empty() &&
                         bars.bars[i + 1].stretches.front().begin == stretch.end;
      if (falls) out += svg_line(area.x(stretch.end), y + kBarHeight, area.x(stretch.end), y + kRow, "join");
    }
    out += svg_text(area.right + 10, y + 12, bar.value);
  }
  return out;
}

}  // namespace

std::string bars_svg(const Bars& bars, const SvgSize& size) {
  const int width = std::clamp(size.width, 360, 10'000);
  const SvgHead head =
      svg_head(bars.title, bars.note, bars.kinds, std::vector(bars.kinds.size(), LegendKey::kBox), width);
  double labels = 0, values = 0;
  for (const Bar& bar : bars.bars) {
    labels = std::max(labels, svg_text_width(base::shorten(bar.label, kLabelLetters)));
    values = std::max(values, svg_text_width(bar.value));
  }
  const double left = std::min(labels + 26, width * 0.45), right = std::max(left + 60, width - values - 26);
  const AxisMap axis(bars.axis, stretch_ends(bars), static_cast<std::size_t>((right - left) / 80));
  const Area area{left, right, head.bottom + 16, axis};
  const double bottom = area.top + kRow * static_cast<double>(bars.bars.size()) + 4;
  return svg_begin(width, static_cast<int>(bottom + 52), bars.title, size.theme) + head.text +
         grid(bars, bottom, area) + rows(bars, area) + std::string(kSvgEnd);
}

}  // namespace llmprof::report
