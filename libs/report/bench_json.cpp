#include "base/json.h"
#include "report/bench.h"

namespace llmprof::report {
namespace {

using analyze::BenchPoint;
using base::Json;
using base::maybe;
using base::text_or_null;

Json time_json(const BenchPoint& point) {
  if (!point.median_ns) return nullptr;
  return {{"samples", point.samples},
          {"median_ns", maybe(point.median_ns)},
          {"low_ns", maybe(point.low_ns)},
          {"high_ns", maybe(point.high_ns)},
          {"mean_ns", maybe(point.mean_ns)},
          {"min_ns", maybe(point.min_ns)},
          {"max_ns", maybe(point.max_ns)},
          {"stddev_ns", maybe(point.stddev_ns)},
          {"p5_ns", maybe(point.p5_ns)},
          {"p95_ns", maybe(point.p95_ns)},
          {"p99_ns", maybe(point.p99_ns)},
          {"noisy", point.noisy},
          {"stopped_by", text_or_null(point.stopped_by)},
          {"throttled", point.throttled},
          {"clock_mhz", maybe(point.clock_mhz)}};
}

void add_identity(const BenchPoint& point, Json& json) {
  json["id"] = point.id;
  json["op"] = point.op;
  json["type"] = point.type;
  json["axes"] = Json::object();
  for (const auto& [axis, value] : point.axes) json["axes"][axis] = value;
  json["name"] = text_or_null(point.name);
  json["cache"] = point.cache;
  json["implementation"] = text_or_null(point.implementation);
}

Json point_json(const BenchPoint& point) {
  Json json;
  add_identity(point, json);
  json["status"] = point.status;
  json["reason"] = text_or_null(point.reason);
  json["method"] = text_or_null(point.method);
  json["kernels"] = text_or_null(point.kernels);
  json["timer"] = text_or_null(point.timer);
  json["time"] = time_json(point);
  json["flops"] = point.flops;
  json["read_bytes"] = point.read_bytes;
  json["write_bytes"] = point.write_bytes;
  json["flops_per_s"] = maybe(point.flops_per_s);
  json["bytes_per_s"] = maybe(point.bytes_per_s);
  json["floor_ns"] = maybe(point.floor_ns);
  json["of_roof"] = maybe(point.of_roof);
  json["bound"] = text_or_null(point.bound);
  json["denominator"] = text_or_null(point.denominator);
  json["tensor_bytes"] = point.tensor_bytes;
  json["workspace_bytes"] = point.workspace_bytes;
  json["buffer_sets"] = point.buffer_sets;
  json["error"] = maybe(point.error);
  json["event_ns"] = maybe(point.event_ns);
  json["graph_ns"] = maybe(point.graph_ns);
  json["used_calls"] = maybe(point.used_calls);
  json["used_ns"] = maybe(point.used_ns);
  json["begin_ns"] = point.begin_ns;
  json["end_ns"] = point.end_ns;
  return json;
}

Json change_json(const analyze::BenchChange& change) {
  Json json;
  add_identity(change.a, json);
  json.erase("id");
  json["a_median_ns"] = maybe(change.a.median_ns);
  json["b_median_ns"] = maybe(change.b.median_ns);
  json["ratio"] = change.ratio;
  json["low"] = change.low;
  json["high"] = change.high;
  json["p"] = change.p;
  json["verdict"] = analyze::verdict_name(change.verdict);
  return json;
}

Json only_json(const std::vector<BenchPoint>& points) {
  Json list = Json::array();
  for (const BenchPoint& point : points) {
    Json json;
    add_identity(point, json);
    json["status"] = point.status;
    json["reason"] = text_or_null(point.reason);
    json["median_ns"] = maybe(point.median_ns);
    list.push_back(std::move(json));
  }
  return list;
}

}  // namespace

Json bench_points_json(const std::vector<BenchPoint>& points) {
  Json list = Json::array();
  for (const BenchPoint& point : points) list.push_back(point_json(point));
  return list;
}

void to_json(const BenchPage& page, Json& out) {
  out["run"] = {{"path", page.run},
                {"created", page.info.created},
                {"command", page.info.command},
                {"source", page.info.source},
                {"recorded_by", page.info.llmprof_version}};
  out["losses"] = Json::array();
  for (const analyze::Loss& loss : page.results.losses) {
    out["losses"].push_back({{"name", loss.name},
                             {"severity", loss.severity},
                             {"count", loss.count},
                             {"unit", loss.unit},
                             {"meaning", loss.meaning},
                             {"remedy", text_or_null(loss.remedy)},
                             {"detail", text_or_null(loss.detail)}});
  }
  out["devices"] = Json::array();
  for (const analyze::DeviceCard& device : page.results.devices) {
    out["devices"].push_back({{"kind", device.kind},
                              {"name", device.name},
                              {"chip", text_or_null(device.chip)},
                              {"units", device.units},
                              {"memory_bytes", device.memory_bytes},
                              {"cache_bytes", device.cache_bytes},
                              {"driver", text_or_null(device.driver)}});
  }
  out["points"] = bench_points_json(page.results.points);
}

void to_json(const BenchComparePage& page, Json& out) {
  const analyze::BenchComparison& comparison = page.comparison;
  out["a"] = page.a;
  out["b"] = page.b;
  out["threshold"] = comparison.threshold;
  out["geometric_mean_ratio"] = maybe(comparison.ratio);
  out["confounders"] = comparison.confounders;
  out["points"] = Json::array();
  for (const analyze::BenchChange& change : comparison.changes) out["points"].push_back(change_json(change));
  out["not_compared"] = Json::array();
  for (const auto& [point, why] : comparison.open) {
    Json json;
    add_identity(point, json);
    json.erase("id");
    json["why"] = why;
    out["not_compared"].push_back(std::move(json));
  }
  out["only_a"] = only_json(comparison.only_a);
  out["only_b"] = only_json(comparison.only_b);
}

}  // namespace llmprof::report
