#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text_table.h"
#include "report/layout.h"
#include "report/plot.h"
#include "report/plot_axis.h"

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

// Pixels of 12 px text, estimated generously: the fonts of the viewer are not known.
double text_width(std::string_view text) { return 6.8 * static_cast<double>(base::display_width(text)); }

// With its end cut off where it is wider; "" if not even three letters fit.
std::string fitting(std::string_view text, double width) {
  const std::string clean = base::printable(text);
  if (text_width(clean) <= width) return clean;
  const auto letters = static_cast<std::size_t>(std::max(width, 0.0) / text_width("x"));
  return letters < 4 ? "" : cut_off(clean, letters);
}

// Broken at spaces into lines of at most `width` pixels.
std::vector<std::string> broken(std::string_view text, double width) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word(text.substr(begin, end - begin));
    begin = end + 1;
    if (!lines.empty() && text_width(lines.back() + " " + word) <= width) {
      lines.back() += " " + word;
    } else {
      lines.push_back(fitting(word, width));
    }
  }
  return lines;
}

// Boxes that may hold text are lighter, so that it can be read; thin ones would hardly be seen then.
constexpr double kBelowText = 0.6, kThin = 20;

enum class Anchor { kStart, kMiddle, kEnd };

// The rectangle of a label, to keep labels off each other.
struct Place {
  double left, top, right, bottom;
  bool touches(const Place& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
};

// The document grows from the top down: the head, then the axes and what they hold.
class Document {
 public:
  Document(const Plot& plot, const SvgSize& size)
      : plot_(plot), width_(std::clamp(size.width, plot.rows.empty() ? 240 : 360, 10'000)) {
    head();
    const double bottom = plot.rows.empty() ? series_plot(std::clamp(size.height, 160, 10'000)) : rows_plot();
    begin_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"llmprof\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
        "{1}\" role=\"img\">\n<title>{2}</title>\n<style>{3}</style>\n"
        "<rect class=\"page\" width=\"{0}\" height=\"{1}\"/>\n",
        width_, static_cast<int>(bottom), svg_escaped(plot.title), style_of(size.theme));
  }
  std::string text() const { return begin_ + out_ + "</svg>\n"; }

 private:
  void text(double x, double y, std::string_view words, Anchor anchor = Anchor::kStart, std::string_view style = "") {
    static constexpr std::array<std::string_view, 3> kAnchors = {"", " text-anchor=\"middle\"", " text-anchor=\"end\""};
    out_ +=
        fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\"{}{}>{}</text>\n", x, y, kAnchors[static_cast<std::size_t>(anchor)],
                    style.empty() ? "" : fmt::format(" class=\"{}\"", style), svg_escaped(words));
  }
  void line(double x1, double y1, double x2, double y2, std::string_view style) {
    out_ += fmt::format("<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n", style, x1, y1,
                        x2, y2);
  }
  // Circles, squares, diamonds and triangles in turn.
  void mark(std::size_t series, double x, double y, std::string_view tip) {
    static constexpr std::array<std::string_view, 4> kShapes = {
        "circle class=\"f{0}\" cx=\"{1:.1f}\" cy=\"{2:.1f}\" r=\"3.5\">{3}</circle",
        "path class=\"f{0}\" d=\"M{1:.1f} {2:.1f}m-3.2 -3.2h6.4v6.4h-6.4z\">{3}</path",
        "path class=\"f{0}\" d=\"M{1:.1f} {2:.1f}m0 -4.5l4.5 4.5l-4.5 4.5l-4.5 -4.5z\">{3}</path",
        "path class=\"f{0}\" d=\"M{1:.1f} {2:.1f}m0 -4.6l4.3 7.4h-8.6z\">{3}</path"};
    const std::string title = tip.empty() ? "" : fmt::format("<title>{}</title>", svg_escaped(tip));
    out_ += "<" + fmt::format(fmt::runtime(kShapes[series % 4]), series % kColours, x, y, title) + ">\n";
  }

  // Title, note and legend from the top left, broken where the width demands.
  void head() {
    constexpr double kTitleSize = 1.25;  // of 12 px
    top_ = 7;
    for (const std::string& each : broken(plot_.title, (width_ - 32) / kTitleSize))
      text(16, top_ += 19, each, Anchor::kStart, "title");
    for (const std::string& each : broken(plot_.note, width_ - 32.0))
      text(16, top_ += top_ < 27 ? 19 : 16, each, Anchor::kStart, "note");
    double x = 16, y = top_ + 22;
    const auto place = [&](const std::string& whole_name) {
      const std::string name = fitting(whole_name, width_ - 52);
      const double needed = 20 + text_width(name) + 18;
      if (x > 16 && x + needed > width_) x = 16, y += 18;
      text(x + 20, y, name);
      top_ = y + 4;
      return std::exchange(x, x + needed);
    };
    for (std::size_t i = 0; i < plot_.colours.size() && plot_.colours.size() > 1; ++i) {
      if (plot_.colours[i].empty()) continue;
      const double left = place(plot_.colours[i]);
      out_ += fmt::format(
          "<rect class=\"f{}\" fill-opacity=\"0.85\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"13\" height=\"10\"/>\n",
          i % kColours, left, y - 9);
    }
    const auto named = std::ranges::count(plot_.series, false, &Series::backdrop);
    for (std::size_t i = 0; i < plot_.series.size() && named > 1; ++i) {
      if (plot_.series[i].backdrop) continue;
      const double left = place(plot_.series[i].name);
      if (plot_.series[i].mark == Mark::kLine)
        out_ += fmt::format("<path class=\"s{}\" d=\"M{:.1f} {:.1f}h15\"/>\n", i % kColours, left, y - 4);
      else
        mark(i, left + 7, y - 4, "");
    }
  }

  double x(double value) const { return left_ + axes_->x.position(value) * (right_ - left_); }
  double y(double value) const { return bottom_ - axes_->y.position(value) * (bottom_ - top_); }

  void x_axis() {
    double free_from = 0;  // labels that would touch their left neighbour are left out
    for (const Tick& tick : axes_->x.ticks()) {
      const double at = x(tick.value), half = text_width(tick.label) / 2;
      line(at, top_, at, bottom_, "grid");
      if (at - half < free_from || at + half > width_) continue;
      text(at, bottom_ + 17, tick.label, Anchor::kMiddle);
      free_from = at + half + 8;
    }
    line(left_, bottom_, right_, bottom_, "axis");
    text((left_ + right_) / 2, bottom_ + 37, axis_title(plot_.x), Anchor::kMiddle, "note");
  }

  // Both return the height of the whole.
  double series_plot(int height) {
    top_ += 36, bottom_ = std::max(height - 52.0, top_ + 60);
    const PlotAxes axes(plot_, static_cast<std::size_t>(width_) / 80, static_cast<std::size_t>(bottom_ - top_) / 40);
    axes_ = &axes;
    double labels = 0;
    for (const Tick& tick : axes.y.ticks()) labels = std::max(labels, text_width(tick.label));
    left_ = 24 + labels, right_ = width_ - 24.0;
    x_axis();
    for (const Tick& tick : axes.y.ticks()) {
      line(left_, y(tick.value), right_, y(tick.value), "grid");
      text(left_ - 7, y(tick.value) + 4, tick.label, Anchor::kEnd);
    }
    line(left_, top_, left_, bottom_, "axis");
    text(16, top_ - 13, axis_title(plot_.y), Anchor::kStart, "note");
    guides(false);
    for (std::size_t i = plot_.series.size(); i-- > 0;) series(i);  // the first one on top
    guides(true);  // labels stand above what is drawn between them and their lines
    labels_of_points();
    if (const std::string missing = not_drawn(plot_, axes); !missing.empty())
      text(16, bottom_ + 46, missing, Anchor::kStart, "note");
    return bottom_ + 52;
  }

  void guides(bool labels) {
    std::vector<Place> taken;
    for (const Guide& guide : plot_.guides) {
      const bool up = guide.at == Guide::At::kX;
      if (!(up ? axes_->x : axes_->y).inside(guide.value)) continue;
      const double at = up ? x(guide.value) : y(guide.value), width = text_width(guide.label) + 10;
      if (!labels) {
        up ? line(at, top_, at, bottom_, "guide") : line(left_, at, right_, at, "guide");
      } else if (!up) {
        text(right_ - 5, at - 5, guide.label, Anchor::kEnd, "note halo");
      } else {
        // Labels that would touch one another stand in rows, one above the other.
        const bool leftwards = at + width > right_;
        const double left = leftwards ? at - width : at;
        double row = guide.low ? bottom_ - 7 : top_ + 13;
        const auto place = [&] { return Place{left, row - 12, left + width, row}; };
        while (std::ranges::any_of(taken, [&](const Place& other) { return other.touches(place()); }))
          row += guide.low ? -15 : 15;
        taken.push_back(place());
        text(leftwards ? at - 5 : at + 5, row, guide.label, leftwards ? Anchor::kEnd : Anchor::kStart, "note halo");
      }
    }
  }

  void series(std::size_t index) {
    const Series& series = plot_.series[index];
    const std::vector<PlotPoint> points = thinned(series.points, axes_->x, static_cast<std::size_t>(right_ - left_));
    std::string path;
    bool pen_down = false;
    for (const PlotPoint& point : points) {
      const bool shown = axes_->shows(point);
      if (shown) path += fmt::format("{}{:.1f} {:.1f}", pen_down ? 'L' : 'M', x(point.x), y(point.y));
      pen_down = shown;
    }
    const std::string style = series.backdrop ? "roof" : fmt::format("s{}", index % kColours);
    if (series.mark != Mark::kPoints && !path.empty())
      out_ += fmt::format("<path class=\"{}\" d=\"{}\"/>\n", style, path);
    for (const PlotPoint& point : points) {
      if (series.mark == Mark::kLine || !axes_->shows(point)) continue;
      mark(index, x(point.x), y(point.y),
           fmt::format("{}: {} at {}", series.name, axis_value(plot_.y, point.y), axis_value(plot_.x, point.x)));
    }
  }

  // Where a label may stand, the best first: right of its point, left, above or below it; of a line above or below it.
  static std::vector<Place> places_of(const PlotLabel& label, double x, double y, double width) {
    constexpr double kLetter = 14, kAway = 8;
    if (label.on_line)
      return {{x - 6 - width, y - kLetter - 4, x - 6, y - 4}, {x - 6 - width, y + 4, x - 6, y + kLetter + 4}};
    return {{x + kAway, y - kLetter / 2, x + kAway + width, y + kLetter / 2},
            {x - kAway - width, y - kLetter / 2, x - kAway, y + kLetter / 2},
            {x - width / 2, y - kAway - kLetter, x + width / 2, y - kAway},
            {x - width / 2, y + kAway, x + width / 2, y + kAway + kLetter}};
  }

  // Where no other label and no mark of a labelled point stands.
  void labels_of_points() {
    std::vector<Place> taken;
    for (const PlotLabel& label : plot_.labels) {
      if (!axes_->shows(PlotPoint{label.x, label.y}) || label.on_line) continue;
      taken.push_back({x(label.x) - 4, y(label.y) - 4, x(label.x) + 4, y(label.y) + 4});
    }
    const auto free = [&](const Place& place) {
      return place.left >= left_ && place.right <= right_ && place.top >= top_ && place.bottom <= bottom_ &&
             std::ranges::none_of(taken, [&](const Place& other) { return other.touches(place); });
    };
    for (const PlotLabel& label : plot_.labels) {
      if (!axes_->x.inside(label.x) || !axes_->y.inside(label.y)) continue;
      const std::vector<Place> places = places_of(label, x(label.x), y(label.y), text_width(label.text));
      const auto place = std::ranges::find_if(places, free);
      if (place == places.end()) continue;
      text(place->left, place->bottom - 3, label.text, Anchor::kStart, "halo");
      taken.push_back(*place);
    }
  }

  double rows_plot() {
    double labels = 0, values = 0, height = 0;
    for (const PlotRow& row : plot_.rows) {
      labels = std::max({labels, row.heading ? 0 : text_width(row.label), text_width(row.detail)});
      values = std::max(values, text_width(row.value));
      height += row.height;
    }
    const bool axis = !plot_.x.title.empty();
    const double margin = axis ? 26 : 16;
    left_ = labels > 0 ? std::min(labels + 26, width_ * (values > 0 ? 0.45 : 0.28)) : margin;
    right_ = std::max(left_ + 60, width_ - values - margin);
    top_ += axis ? 16 : 10, bottom_ = top_ + height + 4;
    const PlotAxes axes(plot_, static_cast<std::size_t>((right_ - left_) / 80), 2);
    axes_ = &axes;
    if (axis) x_axis();
    double y = top_;
    for (std::size_t i = 0; i < plot_.rows.size(); y += plot_.rows[i++].height) row(i, y);
    return axis ? bottom_ + 52 : bottom_ + 12;
  }

  void row(std::size_t index, double y) {
    const PlotRow& row = plot_.rows[index];
    const double middle = y + row.height / 2;
    if (row.heading) return text(16, middle + 4, fitting(row.label, right_ - 16), Anchor::kStart, "note");
    const std::string_view style = row.height < 20 || !row.range.empty() ? "small" : "";
    const double label_y = row.detail.empty() ? middle + 4 : middle - 3;
    if (!row.label.empty()) text(left_ - 9, label_y, fitting(row.label, left_ - 20), Anchor::kEnd, style);
    if (!row.detail.empty()) text(left_ - 9, label_y + 14, fitting(row.detail, left_ - 14), Anchor::kEnd, style);
    if (!row.value.empty()) text(right_ + 10, middle + 4, row.value);
    if (row.ruled) line(left_, y + row.height - row.gap / 4, right_, y + row.height - row.gap / 4, "grid");
    range(row, y);
    for (const Box& each : row.boxes) {
      if (axes_->shows(each) && each.begin != each.end) box(row, each, y + row.gap / 2);
    }
    // A dotted line from where this row ends to the next, which begins there.
    if (!plot_.joined || index + 1 == plot_.rows.size() || row.boxes.empty() || !axes_->shows(row.boxes.back())) return;
    const double end = x(row.boxes.back().end);
    line(end, y + row.height - row.gap / 2, end, y + row.height + plot_.rows[index + 1].gap / 2, "join");
  }

  void box(const PlotRow& row, const Box& box, double y) {
    const double from = x(std::min(box.begin, box.end)), width = std::max(x(std::max(box.begin, box.end)) - from, 0.8);
    std::string tip = box.tip;
    if (tip.empty()) {
      tip = row.label + ": ";
      if (box.colour < plot_.colours.size()) tip += plot_.colours[box.colour] + ": ";
      tip += axis_value(plot_.x, std::fabs(box.end - box.begin));
    }
    const std::string inside = fitting(box.text, width - 9);
    const double opacity = box.opacity * (box.text.empty() || width < kThin ? 1 : kBelowText);
    out_ += fmt::format(
        "<g><title>{}</title><rect class=\"f{}\"{} x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.0f}\"/>",
        svg_escaped(tip), box.colour % kColours, opacity < 1 ? fmt::format(" fill-opacity=\"{:.2f}\"", opacity) : "",
        from, y, width, row.height - row.gap);
    if (!inside.empty()) text(from + 4, y + (row.height - row.gap) / 2 + 4, inside, Anchor::kStart, "small");
    out_ += "</g>\n";
  }

  // Between the lowest and the highest reading of every moment, as an area, with a line on top.
  void range(const PlotRow& row, double y) {
    if (row.range.empty()) return;
    const double low = std::ranges::min(row.range, {}, &RangePoint::low).low;
    const double high = std::ranges::max(row.range, {}, &RangePoint::high).high;
    if (!std::isfinite(low) || !std::isfinite(high)) return;
    const double bottom = low > 0 && low < high / 2 ? 0 : low, span = high > bottom ? high - bottom : 1;
    const auto at = [&](double value) { return y + row.height - 6 - (value - bottom) / span * (row.height - 12); };
    std::string up, down;
    for (const RangePoint& point : row.range) {
      up += fmt::format("{}{:.1f} {:.1f}", up.empty() ? "M" : "L", x(point.x), at(point.high));
      down = fmt::format("L{:.1f} {:.1f}", x(point.x), at(point.low)) + down;
    }
    out_ += fmt::format("<path class=\"f{0}\" fill-opacity=\"0.25\" d=\"{1}{2}z\"/><path class=\"s{0}\" d=\"{1}\"/>\n",
                        row.colour % kColours, up, down);
  }

  const Plot& plot_;
  int width_;
  double left_ = 0, right_ = 0, top_ = 0, bottom_ = 0;  // what the axes enclose
  const PlotAxes* axes_ = nullptr;                      // while what they enclose is drawn
  std::string begin_, out_;
};

}  // namespace

std::string svg_escaped(std::string_view text) {
  static constexpr std::array<std::pair<char, std::string_view>, 5> kEntities = {
      {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}}};
  std::string out;
  for (const char c : base::printable(text)) {
    const auto found = std::ranges::find(kEntities, c, &std::pair<char, std::string_view>::first);
    out += found == kEntities.end() ? std::string_view(&c, 1) : found->second;
  }
  return out;
}

std::string plot_svg(const Plot& plot, const SvgSize& size) { return Document(plot, size).text(); }

}  // namespace llmprof::report
