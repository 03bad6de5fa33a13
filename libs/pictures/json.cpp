// The pictures as JSON: columns instead of objects, because they are long. docs/format/page.md.
#include "base/fields_json.h"

#include <array>
#include <cmath>
#include <map>

#include "analyze/passes/kernel_class.h"
#include "base/kernel_name.h"
#include "pictures/page_data.h"

namespace llmprof::pictures {
namespace {

using base::Json;

constexpr const char* kKinds[] = {"stages", "ranges", "api", "stream", "copies", "idle", "graphs"};

// Six significant digits: a reading is not more exact.
Json reading(double value) {
  if (!std::isfinite(value)) return nullptr;
  if (value == 0 || value == std::floor(value)) return value;
  const double scale = std::pow(10.0, 5 - std::floor(std::log10(std::fabs(value))));
  return std::isfinite(scale) && scale > 0 ? std::round(value * scale) / scale : value;
}

// One column of a list of things.
template <class Items, class Value>
Json column(const Items& items, Value&& value) {
  Json out = Json::array();
  for (const auto& item : items) out.push_back(value(item));
  return out;
}

Json busy_share(const Slice& slice) {
  const double share = std::round(static_cast<double>(slice.busy) * 1000) / 1000;
  return share == 1 ? Json(1) : Json(share);
}

Json lane_json(const Lane& lane, std::int64_t origin_ns) {
  const auto of = [&](auto&& value) { return column(lane.slices, value); };
  return {{"kind", kKinds[static_cast<std::size_t>(lane.kind)]},
          {"group", lane.group},
          {"name", lane.name},
          {"table", base::text_or_null(lane.table)},
          {"begin", of([&](const Slice& slice) { return slice.begin_ns - origin_ns; })},
          {"end", of([&](const Slice& slice) { return slice.end_ns - origin_ns; })},
          {"label", of([](const Slice& slice) { return slice.name; })},
          {"stage", of([](const Slice& slice) { return slice.stage; })},
          {"count", of([](const Slice& slice) { return slice.count; })},
          {"busy", of(busy_share)},
          {"id", of([](const Slice& slice) { return slice.id; })},
          {"estimated", of([](const Slice& slice) { return slice.estimated ? 1 : 0; })}};
}

Json curve_json(const Curve& curve, std::int64_t origin_ns) {
  return {{"group", curve.group},
          {"name", curve.name},
          {"unit", curve.unit},
          {"ts", column(curve.ts_ns, [&](std::int64_t ts_ns) { return ts_ns - origin_ns; })},
          {"low", column(curve.low, reading)},
          {"high", column(curve.high, reading)}};
}

// For small boxes; null where it is the name itself.
Json short_or_null(const std::string& name) {
  const std::string shortened = base::short_kernel_name(name);
  return shortened == name ? Json(nullptr) : Json(shortened);
}

std::string_view class_of(const std::string& kernel) {
  return analyze::kernel_class_title(analyze::class_of_kernel(kernel));
}

// By name: the class of kernels; null of what is none.
Json classes_json(const Timeline& timeline) {
  std::vector<bool> executes(timeline.names.size(), false);
  for (const Lane& lane : timeline.lanes) {
    if (lane.kind != Lane::Kind::kStream) continue;
    for (const Slice& slice : lane.slices)
      if (slice.name >= 0) executes[static_cast<std::size_t>(slice.name)] = true;
  }
  Json out = Json::array();
  for (std::size_t i = 0; i < timeline.names.size(); ++i)
    out.push_back(executes[i] ? Json(class_of(timeline.names[i])) : Json(nullptr));
  return out;
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
    if (kind != "kernel") return;
    short_names_[number_of_name] = short_or_null(name);
    classes_[number_of_name] = class_of(name);
  }
  void put(Json& out) {
    out["names"] = std::move(names_);
    out["short_names"] = std::move(short_names_);
    out["classes"] = std::move(classes_);
    out["parent"] = std::move(parents_);
    out["name"] = std::move(names_of_nodes_);
    out["kind"] = std::move(kinds_);
  }

 private:
  std::size_t number(const std::string& text) {
    const auto [found, is_new] = numbers_.try_emplace(text, names_.size());
    if (is_new) names_.push_back(text), short_names_.push_back(nullptr), classes_.push_back(nullptr);
    return found->second;
  }
  Json names_ = Json::array(), short_names_ = Json::array(), classes_ = Json::array(), parents_ = Json::array(),
       names_of_nodes_ = Json::array(), kinds_ = Json::array();
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
  const std::int64_t origin_ns = timeline.window.begin_ns;
  return {{"run", {timeline.run.begin_ns, timeline.run.end_ns}},
          {"window", {origin_ns, timeline.window.end_ns}},
          {"names", timeline.names},
          {"short_names", column(timeline.names, short_or_null)},
          {"classes", classes_json(timeline)},
          {"lanes", column(timeline.lanes, [&](const Lane& lane) { return lane_json(lane, origin_ns); })},
          {"curves", column(timeline.curves, [&](const Curve& curve) { return curve_json(curve, origin_ns); })},
          {"slices_in_window", timeline.slices_in_window},
          {"lanes_left_out", timeline.lanes_left_out}};
}

Json to_json(const Roofline& roofline) {
  const auto point_json = [](const RooflinePoint& point) -> Json {
    return {{"kind", point.kind},
            {"name", point.name},
            {"short_name", short_or_null(point.kind == "kernel" ? point.name : "")},
            {"stage", point.stage},
            {"intensity", reading(point.intensity)},
            {"flops_per_s", reading(point.flops_per_s)},
            {"time_ns", point.time_ns},
            {"source", point.source},
            {"level", base::text_or_null(point.level)}};
  };
  return {{"device", roofline.device},
          {"why", base::text_or_null(roofline.why)},
          {"roofs", base::fields_json(roofline.roofs)},
          {"points", column(roofline.points, point_json)}};
}

Json to_json(const std::vector<analyze::StepCurve>& curves) { return base::fields_json(curves); }

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
  WeightColumns of_layers;
  for (const FlameLayer& layer : flame.layers) of_layers.add(layer.self);
  out["layers"] = {{"node", column(flame.layers, [](const FlameLayer& layer) { return layer.node; })},
                   {"layer", column(flame.layers, [](const FlameLayer& layer) { return layer.layer; })},
                   {"self", std::move(of_layers.columns)}};
  out["wrappers"] = flame.wrappers;
  out["total"] = whole(flame.total);
  out["merged"] = whole(flame.aggregated);
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
