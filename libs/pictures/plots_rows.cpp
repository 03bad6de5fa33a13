// Pictures that are rows of boxes: the lanes of a timeline, the levels of a flame graph.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/human.h"
#include "base/kernel_name.h"
#include "base/text_table.h"
#include "pictures/plots.h"

namespace llmprof::pictures {
namespace {

using report::Plot;
using report::PlotRow;

constexpr double kLaneHeight = 18, kGroupHeight = 22, kCurveHeight = 40, kSolid = 0.85;
constexpr std::size_t kMostLanes = 28, kMostCurves = 6, kLegendLetters = 38;
constexpr std::size_t kGrey = report::kColours - 1;  // what has no colour of its own

bool executes(const Lane& lane) {
  return lane.kind == Lane::Kind::kStream || lane.kind == Lane::Kind::kCopies || lane.kind == Lane::Kind::kGraphs;
}

std::string name_in(const Timeline& timeline, std::int32_t name) {
  const bool known = name >= 0 && static_cast<std::size_t>(name) < timeline.names.size();
  return known ? std::string(base::without_signature(timeline.names[static_cast<std::size_t>(name)])) : "";
}

// What a slice's colour stands for: its stage, or, in a picture of one stage, its name. Those with most time have one.
class SliceColours {
 public:
  explicit SliceColours(const Timeline& timeline) {
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
      legend_[i] = base::shorten(name_in(timeline, order[i].second), kLegendLetters);
    }
    if (order.size() > kGrey || by_name_) legend_[kGrey] = by_name_ ? "others" : "other stages";
  }

  std::size_t of(const Lane& lane, const Slice& slice) const {
    if (lane.kind == Lane::Kind::kIdle || (by_name_ && !executes(lane))) return kGrey;
    const auto found = number_.find(by_name_ ? slice.name : slice.stage);
    return found == number_.end() ? kGrey : found->second;
  }
  const std::vector<std::string>& legend() const { return legend_; }

 private:
  bool by_name_ = false;
  std::map<std::int32_t, std::size_t> number_;
  std::vector<std::string> legend_ = std::vector<std::string>(report::kColours);
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
  if (curve.unit == "B") return base::human_bytes(value);
  return fmt::format("{} {}", std::fabs(value) < 1 ? fmt::format("{:.2g}", value) : base::three_digits(value),
                     curve.unit);
}

// The readings that say most; where none of these is there, the first one.
std::vector<const Curve*> drawn_curves(const Timeline& timeline) {
  std::vector<const Curve*> out;
  for (const std::string_view wanted :
       {"power_w", "sm_clock_mhz", "sm_active", "tensor_active", "dram_active", "memory_used_bytes"}) {
    for (const Curve& curve : timeline.curves) {
      if (curve.name == wanted && out.size() < kMostCurves) out.push_back(&curve);
    }
  }
  if (out.empty() && !timeline.curves.empty()) out.push_back(&timeline.curves.front());
  return out;
}

// Where a moment stands on the axis: seconds since the window's begin, inside the window.
double second_of(const Timeline& timeline, std::int64_t ns) {
  return static_cast<double>(std::clamp(ns, timeline.window.begin_ns, timeline.window.end_ns) -
                             timeline.window.begin_ns) *
         1e-9;
}

PlotRow curve_row(const Timeline& timeline, const Curve& curve, std::size_t colour) {
  PlotRow row{.label = curve_name(curve), .colour = colour, .height = kCurveHeight};
  for (std::size_t i = 0; i < curve.ts_ns.size(); ++i)
    row.range.push_back({second_of(timeline, curve.ts_ns[i]), curve.low[i], curve.high[i]});
  if (row.range.empty()) return row;
  const double low = *std::ranges::min_element(curve.low), high = *std::ranges::max_element(curve.high);
  row.detail = low == high ? amount(curve, low) : fmt::format("{} to {}", amount(curve, low), amount(curve, high));
  return row;
}

std::string slice_tip(const Timeline& timeline, const Slice& slice) {
  std::string tip = fmt::format("{}: {}", name_in(timeline, slice.name),
                                base::human_ns(static_cast<double>(slice.end_ns - slice.begin_ns)));
  if (slice.count > 1)
    tip += fmt::format(", {} of them, {} busy", slice.count, base::human_percent(static_cast<double>(slice.busy)));
  return tip + (slice.estimated ? ", estimated" : "");
}

PlotRow lane_row(const Timeline& timeline, const Lane& lane, const SliceColours& colours) {
  constexpr double kNamedShare = 0.08;  // of the window: shorter merged slices get no name, which is of one of them
  const double window = second_of(timeline, timeline.window.end_ns);
  PlotRow row{.label = lane.name, .height = kLaneHeight, .gap = 4, .ruled = true};
  for (const Slice& slice : lane.slices) {
    report::Box box{colours.of(lane, slice), second_of(timeline, slice.begin_ns), second_of(timeline, slice.end_ns)};
    if (box.begin == box.end) box.end += window * 1e-6;  // marks are seen too
    if (slice.count == 1 || box.end - box.begin > kNamedShare * window) {
      box.text = name_in(timeline, slice.name);
      if (lane.kind == Lane::Kind::kStream) box.text = base::short_kernel_name(box.text);
    }
    box.tip = slice_tip(timeline, slice);
    const double faint = lane.kind == Lane::Kind::kIdle ? 0.5 : 1;
    box.opacity = kSolid * faint * std::clamp(static_cast<double>(slice.busy), 0.4, 1.0);
    row.boxes.push_back(std::move(box));
  }
  return row;
}

}  // namespace

Plot timeline_plot(const Timeline& timeline) {
  const SliceColours colours(timeline);
  Plot plot;
  plot.x = {.title = "time in the window", .unit = "s", .exact = true};
  plot.x.spans = {0, std::max(second_of(timeline, timeline.window.end_ns), 1e-9)};
  plot.colours = colours.legend();
  std::string group;
  for (const Lane* lane : drawn_lanes(timeline)) {
    if (lane->group != group)
      plot.rows.push_back({.label = group = lane->group, .heading = true, .height = kGroupHeight});
    plot.rows.push_back(lane_row(timeline, *lane, colours));
  }
  const std::vector<const Curve*> curves = drawn_curves(timeline);
  for (std::size_t i = 0; i < curves.size(); ++i) plot.rows.push_back(curve_row(timeline, *curves[i], i));
  return plot;
}

Plot flame_plot(const Flame& flame, std::size_t weight, const std::string& stage, int width) {
  constexpr std::size_t kMostLevels = 64;
  constexpr double kThinnest = 1.5, kBetween = 0.5;  // pixels
  // Each kind has its colour; nodes that stand for several are grey.
  static const std::vector<std::string> kKinds{"stage",  "python", "native", "range",
                                               "module", "kernel", "copy",   "other"};
  Plot plot;
  if (flame.nodes.empty()) return plot;
  std::vector<double> totals(flame.nodes.size());
  std::vector<std::vector<std::size_t>> children(totals.size());
  std::size_t root = 0;
  for (std::size_t i = totals.size(); i-- > 0;) {  // parents come first
    const FlameNode& node = flame.nodes[i];
    totals[i] += node.self[weight];
    if (node.kind == "stage" && node.name == stage && !stage.empty()) root = i;
    if (node.parent < 0) continue;
    totals[static_cast<std::size_t>(node.parent)] += totals[i];
    children[static_cast<std::size_t>(node.parent)].push_back(i);
  }
  const double whole = totals[root], pixel = whole / (width - 32);
  if (!(whole > 0)) return plot;
  plot.x = {.exact = true, .spans = {0, whole}};
  plot.colours.resize(kKinds.size());
  const auto amount_of = [&](double value) { return weight == 2 ? base::human_bytes(value) : base::human_ns(value); };
  struct Placed {
    std::size_t node, depth;
    double begin;
  };
  std::vector<Placed> placed{{root, 0, 0}};
  for (std::size_t i = 0; i < placed.size(); ++i) {
    const auto [at, depth, begin] = placed[i];
    const FlameNode& node = flame.nodes[at];
    const auto colour = std::min<std::size_t>(
        static_cast<std::size_t>(std::ranges::find(kKinds, node.kind) - kKinds.begin()), kKinds.size() - 1);
    plot.colours[colour] = kKinds[colour];
    if (depth >= plot.rows.size()) plot.rows.push_back({.label = "", .height = 18, .gap = 1});
    plot.rows[depth].boxes.push_back({.colour = colour,
                                      .begin = begin,
                                      .end = begin + totals[at] - kBetween * pixel,
                                      .text = node.name,
                                      .tip = fmt::format("{}: {}, {} of {}", node.name, amount_of(totals[at]),
                                                         base::human_percent(totals[at] / whole), amount_of(whole)),
                                      .opacity = kSolid});
    // The heaviest first; what is too thin to be seen is left out, with all that it called.
    std::ranges::stable_sort(children[at], std::ranges::greater(), [&](std::size_t child) { return totals[child]; });
    double next = begin;
    for (const std::size_t child : children[at]) {
      if (totals[child] >= kThinnest * pixel && depth + 1 < kMostLevels) placed.push_back({child, depth + 1, next});
      next += totals[child];
    }
  }
  std::ranges::reverse(plot.rows);  // the outermost stands at the bottom
  return plot;
}

}  // namespace llmprof::pictures
