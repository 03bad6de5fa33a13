#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text_table.h"
#include "report/bars.h"
#include "report/dot_canvas.h"
#include "report/layout.h"
#include "report/text_canvas.h"

namespace llmprof::report {
namespace {

// Fillings tell kinds apart without colour.
std::string_view filling(std::size_t kind, bool unicode) {
  static constexpr std::array<std::string_view, 4> kBlocks = {"█", "▒", "░", "▓"};
  static constexpr std::array<std::string_view, 4> kAscii = {"#", "=", "-", "+"};
  return unicode ? kBlocks[kind % kBlocks.size()] : kAscii[kind % kAscii.size()];
}

// A bar as cells; what is shorter than half a cell but there at all is a thin line.
std::string drawn(const Bar& bar, const AxisMap& axis, std::size_t columns, const TextCanvas& canvas) {
  std::vector<std::string> cells(columns, " ");
  for (const Stretch& stretch : bar.stretches) {
    if (!drawable(stretch, axis) || stretch.begin == stretch.end) continue;
    const auto cell = [&](double value) {
      const double position = std::clamp(axis.position(value), 0.0, 1.0);
      return static_cast<std::size_t>(std::lround(position * static_cast<double>(columns)));
    };
    const std::size_t from = cell(std::min(stretch.begin, stretch.end)),
                      to = cell(std::max(stretch.begin, stretch.end));
    if (from == to) {
      std::string& thin = cells[std::min(from, columns - 1)];
      if (thin == " ") thin = text_coloured(stretch.kind, canvas.unicode ? "▏" : "|", canvas.colour);
    }
    for (std::size_t i = from; i < to; ++i)
      cells[i] = text_coloured(stretch.kind, filling(stretch.kind, canvas.unicode), canvas.colour);
  }
  std::string out;
  for (const std::string& each : cells) out += each;
  return out;
}

std::string padded(std::string_view text, std::size_t width) {
  std::string cell = base::shorten(base::printable(text), width);
  return cell + std::string(width - base::display_width(cell), ' ');
}

}  // namespace

std::string bars_text(const Bars& bars, const TextCanvas& wanted) {
  const TextCanvas canvas = sane(wanted);
  std::size_t labels = 0, values = 0;
  for (const Bar& bar : bars.bars) {
    labels = std::max(labels, base::display_width(base::printable(bar.label)));
    values = std::max(values, base::display_width(base::printable(bar.value)));
  }
  labels = std::min(labels, canvas.width * 2 / 5);
  values = std::min(values, canvas.width * 3 / 10);
  const std::size_t columns = canvas.width - labels - values - 6;
  const AxisMap axis = AxisMap::exactly(stretch_ends(bars));
  std::string out = text_head(bars.title, bars.note, canvas);
  for (const Bar& bar : bars.bars) {
    std::string line = "  " + padded(bar.label, labels) + "  " + drawn(bar, axis, columns, canvas);
    if (!bar.value.empty()) line += "  " + base::shorten(base::printable(bar.value), values);
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  std::vector<LegendEntry> legend;
  for (std::size_t i = 0; i < bars.kinds.size(); ++i)
    legend.push_back({std::string(filling(i, canvas.unicode)), bars.kinds[i]});
  return fitted(out + (legend.size() > 1 ? text_legend(legend, canvas) : ""), canvas);
}

}  // namespace llmprof::report
