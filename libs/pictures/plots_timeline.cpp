#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/human.h"
#include "base/kernel_name.h"
#include "pictures/plots_drawn.h"
#include "report/plot_axis.h"
#include "report/svg.h"

namespace llmprof::pictures {
namespace {

using report::Anchor;
using report::svg_fitting;
using report::svg_line;
using report::svg_text;

constexpr double kLaneHeight = 18, kGroupHeight = 22, kCurveHeight = 40, kRight = 26;
constexpr std::size_t kMostLanes = 28, kMostCurves = 6;
constexpr std::size_t kGrey = report::kColours - 1;  // what has no colour of its own

// What a slice's colour stands for: its stage, or, in a picture of one stage, its name.
class Colours {
 public:
  explicit Colours(const Timeline& timeline) : timeline_(timeline) {
    std::map<std::int32_t, double> stages, names;
    for (const Lane& lane : timeline.lanes) {
      if (lane.kind == Lane::Kind::kIdle) continue;
      for (const Slice& slice : lane.slices) {
        const double ns = static_cast<double>(slice.end_ns - slice.begin_ns);
        if (slice.stage >= 0) stages[slice.stage] += ns;
        if (executes(lane)) names[slice.name] += ns * static_cast<double>(slice.busy);
      }
    }
    by_name_ = stages.size() <= 1;
    std::vector<std::pair<double, std::int32_t>> order;
    for (const auto& [key, ns] : by_name_ ? names : stages) {
      if (key >= 0) order.emplace_back(-ns, key);
    }
    std::sort(order.begin(), order.end());
    for (std::size_t i = 0; i < std::min(order.size(), kGrey); ++i) {
      number_[order[i].second] = i;
      legend_.push_back(text(order[i].second));
    }
    if (order.size() > kGrey || by_name_) legend_.emplace_back(by_name_ ? "others" : "other stages");
  }

  std::size_t of(const Lane& lane, const Slice& slice) const {
    if (lane.kind == Lane::Kind::kIdle || (by_name_ && !executes(lane))) return kGrey;
    const auto found = number_.find(by_name_ ? slice.name : slice.stage);
    return found == number_.end() ? kGrey : found->second;
  }
  const std::vector<std::string>& legend() const { return legend_; }
  std::size_t legend_colour(std::size_t entry) const { return entry < number_.size() ? entry : kGrey; }
  std::string text(std::int32_t name) const {
    const bool known = name >= 0 && static_cast<std::size_t>(name) < timeline_.names.size();
    return known ? std::string(base::without_signature(timeline_.names[static_cast<std::size_t>(name)])) : "";
  }

 private:
  static bool executes(const Lane& lane) {
    return lane.kind == Lane::Kind::kStream || lane.kind == Lane::Kind::kCopies || lane.kind == Lane::Kind::kGraphs;
  }
  const Timeline& timeline_;
  bool by_name_ = false;
  std::map<std::int32_t, std::size_t> number_;
  std::vector<std::string> legend_;
};

struct Scene {
  const Timeline& timeline;
  double left, right;
  double x(std::int64_t ns) const {
    const double whole = static_cast<double>(timeline.window.end_ns - timeline.window.begin_ns);
    const double part = static_cast<double>(ns - timeline.window.begin_ns) / std::max(whole, 1.0);
    return left + std::clamp(part, 0.0, 1.0) * (right - left);
  }
};

// Those with most time in them, in their order: a picture for a document has no room for every thread of a pool.
std::vector<const Lane*> drawn_lanes(const Timeline& timeline) {
  std::vector<std::pair<double, const Lane*>> lanes;
  for (const Lane& lane : timeline.lanes) {
    double ns = 0;
    for (const Slice& slice : lane.slices) ns += static_cast<double>(slice.end_ns - slice.begin_ns);
    const bool device = lane.kind != Lane::Kind::kRanges && lane.kind != Lane::Kind::kApi;
    if (!lane.slices.empty()) lanes.emplace_back(device ? HUGE_VAL : ns, &lane);
  }
  std::stable_sort(lanes.begin(), lanes.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  if (lanes.size() > kMostLanes) lanes.resize(kMostLanes);
  std::vector<const Lane*> out;
  for (const auto& [ns, lane] : lanes) out.push_back(lane);
  std::sort(out.begin(), out.end());  // they lie in one array
  return out;
}

std::string slice_svg(const Scene& scene, const Colours& colours, const Lane& lane, const Slice& slice, double y) {
  const double x = scene.x(slice.begin_ns), width = std::max(scene.x(slice.end_ns) - x, 0.6);
  const bool idle = lane.kind == Lane::Kind::kIdle;
  const std::string text = slice.count == 1 || width > 60 ? svg_fitting(colours.text(slice.name), width - 6) : "";
  const double solid = text.empty() ? 0.85 : 0.5;
  const double opacity = solid * (idle ? 0.5 : 1) * std::clamp(static_cast<double>(slice.busy), 0.4, 1.0);
  std::string tip = fmt::format("{}: {}", colours.text(slice.name),
                                base::human_ns(static_cast<double>(slice.end_ns - slice.begin_ns)));
  if (slice.count > 1)
    tip += fmt::format(", {} of them, {} busy", slice.count, base::human_percent(static_cast<double>(slice.busy)));
  if (slice.estimated) tip += ", estimated";
  std::string out = fmt::format(
      "<g><title>{}</title><rect class=\"f{}\" fill-opacity=\"{:.2f}\" x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" "
      "height=\"{:.0f}\"/>",
      report::svg_escaped(tip), colours.of(lane, slice), opacity, x, y, width, kLaneHeight - 4);
  if (!text.empty()) out += svg_text(x + 3, y + 11, text, Anchor::kStart, "small");
  return out + "</g>\n";
}

std::string lanes_svg(const Scene& scene, const Colours& colours, const std::vector<const Lane*>& lanes, double& y) {
  std::string out, group;
  for (const Lane* lane : lanes) {
    if (lane->group != group) {
      group = lane->group;
      out += svg_text(16, y + 15, svg_fitting(group, scene.right - 16), Anchor::kStart, "note");
      y += kGroupHeight;
    }
    out += svg_text(scene.left - 8, y + 11, svg_fitting(lane->name, scene.left - 30), Anchor::kEnd, "small");
    out += svg_line(scene.left, y + kLaneHeight - 3, scene.right, y + kLaneHeight - 3, "grid");
    for (const Slice& slice : lane->slices) out += slice_svg(scene, colours, *lane, slice, y);
    y += kLaneHeight;
  }
  return out;
}

// "sm_clock_mhz" -> "sm clock": the unit stands beside it.
std::string curve_name(const Curve& curve) {
  std::string name = curve.name;
  for (const std::string_view unit : {"_w", "_mhz", "_bytes", "_c"}) {
    if (name.ends_with(unit)) name.resize(name.size() - unit.size());
  }
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

std::string amount(const Curve& curve, double value) {
  return curve.unit == "B"
             ? base::human_bytes(value)
             : fmt::format("{} {}", std::fabs(value) < 1 ? fmt::format("{:.2g}", value) : base::three_digits(value),
                           curve.unit);
}

// Lowest and highest reading of every pixel, as an area.
std::string curve_svg(const Scene& scene, const Curve& curve, std::size_t colour, double y) {
  double low = HUGE_VAL, high = -HUGE_VAL;
  for (const double value : curve.low) low = std::min(low, value);
  for (const double value : curve.high) high = std::max(high, value);
  if (!std::isfinite(low) || !std::isfinite(high)) return "";
  const double bottom = low > 0 && low < high / 2 ? 0 : low, span = high > bottom ? high - bottom : 1;
  const auto at = [&](double value) { return y + kCurveHeight - 6 - (value - bottom) / span * (kCurveHeight - 12); };
  std::string up, down;
  for (std::size_t i = 0; i < curve.ts_ns.size(); ++i) {
    const double x = scene.x(curve.ts_ns[i]);
    up += fmt::format("{}{:.1f} {:.1f}", up.empty() ? "M" : "L", x, at(curve.high[i]));
    down = fmt::format("L{:.1f} {:.1f}", x, at(curve.low[i])) + down;
  }
  const std::string label = svg_fitting(curve_name(curve), scene.left - 30);
  const std::string range =
      low == high ? amount(curve, low) : fmt::format("{} to {}", amount(curve, low), amount(curve, high));
  return fmt::format("<path class=\"f{0}\" fill-opacity=\"0.25\" d=\"{1}{2}z\"/><path class=\"s{0}\" d=\"{1}\"/>\n",
                     colour, up, down) +
         svg_text(scene.left - 8, y + 17, label, Anchor::kEnd, "small") +
         svg_text(scene.left - 8, y + 31, svg_fitting(range, scene.left - 14), Anchor::kEnd, "small");
}

// The readings that say most; where none of these is there, the first ones.
std::vector<const Curve*> drawn_curves(const Timeline& timeline) {
  std::vector<const Curve*> out;
  for (const std::string_view wanted :
       {"power_w", "sm_clock_mhz", "sm_active", "tensor_active", "dram_active", "memory_used_bytes"}) {
    for (const Curve& curve : timeline.curves) {
      if (curve.name == wanted && out.size() < kMostCurves) out.push_back(&curve);
    }
  }
  for (std::size_t i = 0; i < timeline.curves.size() && out.empty() && i < kMostCurves; ++i)
    out.push_back(&timeline.curves[i]);
  return out;
}

std::string curves_svg(const Scene& scene, double& y) {
  std::string out;
  const std::vector<const Curve*> curves = drawn_curves(scene.timeline);
  for (std::size_t i = 0; i < curves.size(); ++i) {
    out += curve_svg(scene, *curves[i], i % report::kColours, y);
    y += kCurveHeight;
  }
  return out;
}

std::string axis_svg(const Scene& scene, double top, double bottom) {
  const double whole = static_cast<double>(scene.timeline.window.end_ns - scene.timeline.window.begin_ns) * 1e-9;
  const report::Axis axis{"time in the window", "s"};
  const std::vector<double> ends{0, whole};
  const report::AxisMap map(axis, ends, static_cast<std::size_t>((scene.right - scene.left) / 90));
  std::string out;
  double free_from = scene.left - 20;
  for (const report::Tick& tick : map.ticks()) {
    if (tick.value > whole * 1.0001) continue;
    const double x = scene.left + (whole > 0 ? tick.value / whole : 0) * (scene.right - scene.left);
    const double half = report::svg_text_width(tick.label) / 2;
    out += svg_line(x, top, x, bottom, "grid");
    if (x - half < free_from || x + half > scene.right + kRight) continue;
    out += svg_text(x, bottom + 16, tick.label, Anchor::kMiddle);
    free_from = x + half + 8;
  }
  return out + svg_line(scene.left, bottom, scene.right, bottom, "axis") +
         svg_text((scene.left + scene.right) / 2, bottom + 35, axis.title, Anchor::kMiddle, "note");
}

std::string legend_svg(const Colours& colours, int width, double& bottom) {
  std::string out;
  double x = 16, y = bottom + 22;
  for (std::size_t i = 0; i < colours.legend().size(); ++i) {
    const std::string name = svg_fitting(colours.legend()[i], std::min(width - 60.0, 260.0));
    const double needed = 19 + report::svg_text_width(name) + 14;
    if (x > 16 && x + needed > width) x = 16, y += 18;
    out +=
        fmt::format("<rect class=\"f{}\" fill-opacity=\"0.8\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"13\" height=\"10\"/>\n",
                    colours.legend_colour(i), x, y - 9);
    out += svg_text(x + 19, y, name);
    x += needed;
  }
  bottom = y + 6;
  return out;
}

}  // namespace

std::string timeline_svg(const Timeline& timeline, const PictureFrame& frame) {
  const int width = std::clamp(frame.width, 360, 10'000);
  const report::SvgHead head = report::svg_head(frame.title, frame.note, {}, {}, width);
  const std::vector<const Lane*> lanes = drawn_lanes(timeline);
  const Colours colours(timeline);
  double top = head.bottom;
  const std::string legend = legend_svg(colours, width, top);
  double labels = 60;
  for (const Lane* lane : lanes) labels = std::max(labels, report::svg_text_width(lane->name));
  if (!timeline.curves.empty()) labels = std::max(labels, 120.0);
  const Scene scene{timeline, std::min(labels + 31, width * 0.28), width - kRight};
  double y = top + 8;
  std::string drawn = lanes_svg(scene, colours, lanes, y);
  drawn += curves_svg(scene, y);  // below the lanes: `y` has moved
  const double bottom = y + 4;
  return report::svg_begin(width, static_cast<int>(bottom + 46), frame.title, frame.theme) + head.text + legend +
         axis_svg(scene, top + 8, bottom) + drawn + std::string(report::kSvgEnd);
}

}  // namespace llmprof::pictures
