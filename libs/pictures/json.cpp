// The pictures as JSON: columns instead of objects, because they are long. docs/format/page.md.
#include "base/json.h"

#include <array>
#include <cmath>
#include <map>

#include "base/kernel_name.h"
#include "pictures/page_data.h"

namespace llmprof::pictures {
namespace {

using base::Json;

constexpr const char* kKinds[] = {"stages", "ranges", "api", "stream", "copies", "idle", "graphs"};

double rounded(double value, double steps) { return std::round(value * steps) / steps; }

// Six significant digits: a reading is not more exact.
Json reading(double value) {
  if (!std::isfinite(value)) return nullptr;
  if (value == 0 || value == std::floor(value)) return value;
  const double scale = std::pow(10.0, 5 - std::floor(std::log10(std::fabs(value))));
  return std::isfinite(scale) && scale > 0 ? std::round(value * scale) / scale : value;
}

Json lane_json(const Lane& lane, std::int64_t origin_ns) {
  Json begin = Json::array(), end = Json::array(), label = Json::array(), stage = Json::array(), count = Json::array(),
       busy = Json::array(), id = Json::array(), estimated = Json::array();
  for (const Slice& slice : lane.slices) {
    begin.push_back(slice.begin_ns - origin_ns);
    end.push_back(slice.end_ns - origin_ns);
    label.push_back(slice.name);
    stage.push_back(slice.stage);
    count.push_back(slice.count);
    const double share = rounded(static_cast<double>(slice.busy), 1000);
    busy.push_back(share == 1 ? Json(1) : Json(share));
    id.push_back(slice.id);
    estimated.push_back(slice.estimated ? 1 : 0);
  }
  return {{"kind", kKinds[static_cast<std::size_t>(lane.kind)]},
          {"group", lane.group},
          {"name", lane.name},
          {"table", base::text_or_null(lane.table)},
          {"begin", std::move(begin)},
          {"end", std::move(end)},
          {"label", std::move(label)},
          {"stage", std::move(stage)},
          {"count", std::move(count)},
          {"busy", std::move(busy)},
          {"id", std::move(id)},
          {"estimated", std::move(estimated)}};
}

Json curve_json(const Curve& curve, std::int64_t origin_ns) {
  Json ts = Json::array(), low = Json::array(), high = Json::array();
  for (std::size_t i = 0; i < curve.ts_ns.size(); ++i) {
    ts.push_back(curve.ts_ns[i] - origin_ns);
    low.push_back(reading(curve.low[i]));
    high.push_back(reading(curve.high[i]));
  }
  return {{"group", curve.group}, {"name", curve.name},    {"unit", curve.unit},
          {"ts", std::move(ts)},  {"low", std::move(low)}, {"high", std::move(high)}};
}

// For small boxes; null where it is the name itself.
Json short_or_null(const std::string& name) {
  const std::string shortened = base::short_kernel_name(name);
  return shortened == name ? Json(nullptr) : Json(shortened);
}

// The columns that both kinds of trees have.
class Columns {
 public:
  void add(std::int32_t parent, const std::string& name, const std::string& kind) {
    parents_.push_back(parent);
    const std::size_t number_of_name = number(name);
    names_of_nodes_.push_back(number_of_name);
    kinds_.push_back(number(kind));
    // Native functions have their library behind them.
    if (kind == "native") short_names_[number_of_name] = short_or_null(name.substr(0, name.find(" (")));
    if (kind == "kernel") short_names_[number_of_name] = short_or_null(name);
  }
  void put(Json& out) {
    out["names"] = std::move(names_);
    out["short_names"] = std::move(short_names_);
    out["parent"] = std::move(parents_);
    out["name"] = std::move(names_of_nodes_);
    out["kind"] = std::move(kinds_);
  }

 private:
  std::size_t number(const std::string& text) {
    const auto [found, is_new] = numbers_.try_emplace(text, names_.size());
    if (is_new) names_.push_back(text), short_names_.push_back(nullptr);
    return found->second;
  }
  Json names_ = Json::array(), short_names_ = Json::array(), parents_ = Json::array(), names_of_nodes_ = Json::array(),
       kinds_ = Json::array();
  std::map<std::string, std::size_t> numbers_;
};

// Nanoseconds and bytes are whole.
Json whole(double value) { return static_cast<std::int64_t>(std::llround(value)); }
Json whole(const std::array<double, 3>& values) { return {whole(values[0]), whole(values[1]), whole(values[2])}; }

struct WeightColumns {
  Json columns = {Json::array(), Json::array(), Json::array()};
  void add(const std::array<double, 3>& values) {
    for (std::size_t i = 0; i < values.size(); ++i) columns[i].push_back(whole(values[i]));
  }
};

}  // namespace

Json to_json(const Timeline& timeline) {
  Json lanes = Json::array(), curves = Json::array(), short_names = Json::array();
  for (const std::string& name : timeline.names) short_names.push_back(short_or_null(name));
  for (const Lane& lane : timeline.lanes) lanes.push_back(lane_json(lane, timeline.window.begin_ns));
  for (const Curve& curve : timeline.curves) curves.push_back(curve_json(curve, timeline.window.begin_ns));
  return {{"run", {timeline.run.begin_ns, timeline.run.end_ns}},
          {"window", {timeline.window.begin_ns, timeline.window.end_ns}},
          {"names", timeline.names},
          {"short_names", std::move(short_names)},
          {"lanes", std::move(lanes)},
          {"curves", std::move(curves)},
          {"slices_in_window", timeline.slices_in_window},
          {"lanes_left_out", timeline.lanes_left_out}};
}

Json to_json(const Roofline& roofline) {
  Json roofs = Json::array(), points = Json::array();
  for (const Roof& roof : roofline.roofs)
    roofs.push_back({{"name", roof.name},
                     {"flops_per_s", base::maybe(roof.flops_per_s)},
                     {"bytes_per_s", base::maybe(roof.bytes_per_s)},
                     {"source", roof.source}});
  for (const RooflinePoint& point : roofline.points)
    points.push_back({{"kind", point.kind},
                      {"name", point.name},
                      {"short_name", short_or_null(point.kind == "kernel" ? point.name : "")},
                      {"stage", point.stage},
                      {"intensity", reading(point.intensity)},
                      {"flops_per_s", reading(point.flops_per_s)},
                      {"time_ns", point.time_ns},
                      {"source", point.source},
                      {"level", base::text_or_null(point.level)}});
  return {{"device", roofline.device},
          {"why", base::text_or_null(roofline.why)},
          {"roofs", std::move(roofs)},
          {"points", std::move(points)}};
}

Json to_json(const std::vector<StepCurve>& curves) {
  Json out = Json::array();
  for (const StepCurve& curve : curves)
    out.push_back({{"stage", curve.stage},
                   {"steps", curve.steps},
                   {"begin_ns", curve.begin_ns},
                   {"duration_ns", curve.duration_ns},
                   {"batch", curve.batch},
                   {"context", curve.context}});
  return out;
}

Json to_json(const Flame& flame) {
  Columns columns;
  WeightColumns self;
  for (const FlameNode& node : flame.nodes) {
    columns.add(node.parent, node.name, node.kind);
    self.add(node.self);
  }
  Json out = Json::object();
  columns.put(out);
  out["self"] = std::move(self.columns);
  out["total"] = whole(flame.total);
  out["put_together"] = whole(flame.put_together);
  out["why"] = base::text_or_null(flame.why);
  return out;
}

Json to_json(const std::vector<FlameDiffNode>& nodes) {
  Columns columns;
  WeightColumns before, after;
  for (const FlameDiffNode& node : nodes) {
    columns.add(node.parent, node.name, node.kind);
    before.add(node.before);
    after.add(node.after);
  }
  Json out = Json::object();
  columns.put(out);
  out["before"] = std::move(before.columns);
  out["after"] = std::move(after.columns);
  return out;
}

}  // namespace llmprof::pictures
