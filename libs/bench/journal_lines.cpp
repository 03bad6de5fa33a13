// The lines of a journal as JSON. What is read may have been written by anybody: every value is asked for by type.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/json.h"
#include "bench/journal.h"

namespace llmprof::bench {
namespace {

using base::Json;
using base::maybe;

constexpr std::string_view kSchema = "llmprof.bench_journal";
constexpr int kVersion = 1;

constexpr std::array kStatuses{Status::kMeasured, Status::kSkipped, Status::kFailed};
constexpr std::array kStops{StoppedBy::kSpread, StoppedBy::kEntropy, StoppedBy::kTime, StoppedBy::kSamples,
                            StoppedBy::kUser};

Error wrong(std::string message) { return {ErrorCode::kCorruptInput, std::move(message), ""}; }

// Reads values by key; the first one that is not as it should be stays as the error.
class Reader {
 public:
  explicit Reader(const Json& json) : json_(json) {
    if (!json.is_object()) error_ = wrong("a line is not an object");
  }

  std::string text(const char* key) {
    const Json* value = find(key, [](const Json& v) { return v.is_string(); });
    return value != nullptr ? value->get<std::string>() : "";
  }
  std::int64_t integer(const char* key) {
    const Json* value = find(key, [](const Json& v) { return v.is_number_integer(); });
    return value != nullptr ? value->get<std::int64_t>() : 0;
  }
  double real(const char* key) {
    const Json* value = find(key, [](const Json& v) { return v.is_number(); });
    return value != nullptr ? value->get<double>() : 0;
  }
  bool boolean(const char* key) {
    const Json* value = find(key, [](const Json& v) { return v.is_boolean(); });
    return value != nullptr && value->get<bool>();
  }
  std::optional<double> maybe_real(const char* key) { return has(key) ? std::optional(real(key)) : std::nullopt; }
  std::optional<std::int64_t> maybe_integer(const char* key) {
    return has(key) ? std::optional(integer(key)) : std::nullopt;
  }
  const Json& array(const char* key) {
    static const Json empty = Json::array();
    const Json* value = find(key, [](const Json& v) { return v.is_array(); });
    return value != nullptr ? *value : empty;
  }
  const Json& object(const char* key) {
    static const Json empty = Json::object();
    const Json* value = find(key, [](const Json& v) { return v.is_object(); });
    return value != nullptr ? *value : empty;
  }
  bool has(const char* key) const { return json_.is_object() && json_.contains(key) && !json_[key].is_null(); }
  void require(bool fine, const std::string& what) {
    if (!fine && !error_) error_ = wrong(what);
  }
  const std::optional<Error>& error() const { return error_; }

 private:
  template <class Is>
  const Json* find(const char* key, const Is& is) {
    if (has(key) && is(json_[key])) return &json_[key];
    require(false, fmt::format("{} is missing or not what it should be", key));
    return nullptr;
  }

  const Json& json_;
  std::optional<Error> error_;
};

Json axes_to_json(const Problem& problem) {
  Json axes = Json::object();
  for (const auto& [name, value] : problem.axes) axes[name] = value;
  return axes;
}

Json point_to_json(const Point& point) {
  return {{"op", point.problem.op},
          {"type", type_name(point.problem.type)},
          {"axes", axes_to_json(point.problem)},
          {"name", point.name},
          {"cache", cache_name(point.cache)},
          {"implementation", point.implementation},
          {"impossible", point.impossible},
          {"used_calls", maybe(point.used_calls)},
          {"used_ns", maybe(point.used_ns)}};
}

Result<Point> point_from_json(const Json& json) {
  Reader reader(json);
  Point point{.problem = {.op = reader.text("op"), .type = Type::kFloat32, .axes = {}},
              .name = reader.text("name"),
              .cache = Cache::kCold,
              .implementation = reader.text("implementation"),
              .impossible = reader.text("impossible"),
              .used_calls = reader.maybe_integer("used_calls"),
              .used_ns = reader.maybe_integer("used_ns")};
  const auto type = parse_type(reader.text("type"));
  const auto cache = parse_cache(reader.text("cache"));
  const Operator* op = find_operator(point.problem.op);
  reader.require(type && cache && op != nullptr, "a point has an operator, type or cache that is not known");
  if (reader.error()) return *reader.error();
  point.problem.type = *type;
  point.cache = *cache;
  Reader axes(reader.object("axes"));
  for (const AxisSpec& axis : op->axes) {
    point.problem.axes.emplace_back(axis.name, axes.integer(std::string(axis.name).c_str()));
    axes.require(point.problem.axes.back().second >= axis.least, "an axis of a point is less than its least");
  }
  if (axes.error()) return *axes.error();
  return point;
}

Json options_to_json(const BenchOptions& options) {
  return {{"least_samples", options.measure.least_samples},
          {"limit_seconds", options.measure.limit_seconds},
          {"relative_spread", options.measure.relative_spread},
          {"check", options.check},
          {"graph", options.graph},
          {"threads", options.threads},
          {"seed", options.seed}};
}

BenchOptions options_from_json(Reader& reader) {
  BenchOptions options;
  options.measure.least_samples = static_cast<std::size_t>(std::max<std::int64_t>(reader.integer("least_samples"), 1));
  options.measure.limit_seconds = reader.real("limit_seconds");
  options.measure.relative_spread = reader.real("relative_spread");
  options.check = reader.boolean("check");
  options.graph = reader.boolean("graph");
  options.threads = reader.integer("threads");
  options.seed = static_cast<std::uint64_t>(reader.integer("seed"));
  return options;
}

Json measurement_to_json(const Measurement& measured) {
  return {{"samples", measured.samples},     {"stopped_by", stopped_by_name(measured.stopped_by)},
          {"noisy", measured.noisy},         {"throttled", measured.throttled},
          {"clock_mhz", measured.clock_mhz}, {"spent_seconds", measured.spent_seconds}};
}

Result<Measurement> measurement_from_json(const Json& json) {
  Reader reader(json);
  Measurement measured;
  for (const Json& sample : reader.array("samples")) {
    if (!sample.is_number()) return wrong("a sample is not a number");
    measured.samples.push_back(sample.get<double>());
  }
  const std::string stop = reader.text("stopped_by");
  for (const StoppedBy by : kStops) {
    if (stopped_by_name(by) == stop) measured.stopped_by = by;
  }
  measured.noisy = reader.boolean("noisy");
  measured.throttled = static_cast<std::size_t>(reader.integer("throttled"));
  measured.clock_mhz = reader.real("clock_mhz");
  measured.spent_seconds = reader.real("spent_seconds");
  if (reader.error()) return *reader.error();
  if (!measured.samples.empty()) measured.time = statistics(measured.samples);
  return measured;
}

Json work_to_json(const PointResult& result) {
  return {{"flops", result.work.flops},
          {"read_bytes", result.work.read_bytes},
          {"write_bytes", result.work.write_bytes},
          {"floor_seconds", result.roof.floor_seconds},
          {"bound", result.roof.bound},
          {"denominator", result.roof.denominator},
          {"tensor_bytes", result.tensor_bytes},
          {"workspace_bytes", result.workspace_bytes},
          {"buffer_sets", result.buffer_sets}};
}

void work_from_json(const Json& json, PointResult& result, Reader& outer) {
  Reader reader(json);
  result.work = {.flops = reader.real("flops"),
                 .read_bytes = reader.real("read_bytes"),
                 .write_bytes = reader.real("write_bytes")};
  result.roof = {.floor_seconds = reader.real("floor_seconds"),
                 .bound = reader.text("bound"),
                 .denominator = reader.text("denominator")};
  result.tensor_bytes = reader.integer("tensor_bytes");
  result.workspace_bytes = reader.integer("workspace_bytes");
  result.buffer_sets = reader.integer("buffer_sets");
  outer.require(!reader.error(), "the work of a point is not whole");
}

}  // namespace

Json sweep_to_json(const Sweep& sweep) {
  Json json{{"schema", kSchema},
            {"version", kVersion},
            {"llmprof_version", sweep.llmprof_version},
            {"device", sweep.device},
            {"fingerprint", sweep.fingerprint},
            {"command", sweep.command},
            {"options", options_to_json(sweep.options)}};
  json["points"] = Json::array();
  for (const Point& point : sweep.points) json["points"].push_back(point_to_json(point));
  return json;
}

Result<Sweep> sweep_from_json(const Json& json) {
  Reader reader(json);
  if (reader.text("schema") != kSchema) return wrong("it is not the journal of a benchmark");
  if (const std::int64_t version = reader.integer("version"); version != kVersion) {
    return wrong(fmt::format("its format is version {}, this llmprof reads {}", version, kVersion));
  }
  Sweep sweep{.llmprof_version = reader.text("llmprof_version"),
              .device = reader.text("device"),
              .fingerprint = reader.text("fingerprint"),
              .command = {},
              .options = {},
              .points = {}};
  for (const Json& word : reader.array("command")) {
    if (word.is_string()) sweep.command.push_back(word.get<std::string>());
  }
  Reader options(reader.object("options"));
  sweep.options = options_from_json(options);
  if (options.error()) return *options.error();
  const Json& points = reader.array("points");
  reader.require(points.size() <= kMostPoints, "it has more points than a sweep may have");
  if (reader.error()) return *reader.error();
  for (const Json& item : points) {
    LLMPROF_LET(Point point, point_from_json(item));
    sweep.points.push_back(std::move(point));
  }
  return sweep;
}

Json finished_to_json(const Finished& finished) {
  const PointResult& result = finished.result;
  Json json{{"point", finished.point},
            {"status", status_name(result.status)},
            {"reason", result.reason},
            {"implementation", result.implementation},
            {"method", result.method},
            {"kernels", result.kernels},
            {"timer", result.timer},
            {"work", work_to_json(result)},
            {"error", maybe(result.error)},
            {"event_seconds", maybe(result.event_seconds)},
            {"graph_seconds", maybe(result.graph_seconds)},
            {"begin_wall_ns", finished.begin_wall_ns},
            {"end_wall_ns", finished.end_wall_ns}};
  json["measured"] = result.measured.samples.empty() ? Json(nullptr) : measurement_to_json(result.measured);
  return json;
}

Result<Finished> finished_from_json(const Json& json, const Sweep& sweep) {
  Reader reader(json);
  Finished finished{.point = static_cast<std::size_t>(reader.integer("point")),
                    .result = {},
                    .begin_wall_ns = reader.integer("begin_wall_ns"),
                    .end_wall_ns = reader.integer("end_wall_ns")};
  reader.require(finished.point < sweep.points.size(), "a result belongs to no point of the sweep");
  reader.require(finished.begin_wall_ns <= finished.end_wall_ns, "a point ended before it began");
  PointResult& result = finished.result;
  const std::string status = reader.text("status");
  bool known = false;
  for (const Status each : kStatuses) {
    if (status_name(each) != status) continue;
    result.status = each;
    known = true;
  }
  reader.require(known, "a point has a status that is not known");
  result.reason = reader.text("reason");
  result.implementation = reader.text("implementation");
  result.method = reader.text("method");
  result.kernels = reader.text("kernels");
  result.timer = reader.text("timer");
  work_from_json(reader.object("work"), result, reader);
  result.error = reader.maybe_real("error");
  result.event_seconds = reader.maybe_real("event_seconds");
  result.graph_seconds = reader.maybe_real("graph_seconds");
  reader.require(result.status != Status::kMeasured || reader.has("measured"), "a measured point has no samples");
  if (reader.error()) return *reader.error();
  result.problem = sweep.points[finished.point].problem;
  if (reader.has("measured")) {
    LLMPROF_LET(result.measured, measurement_from_json(json["measured"]));
    if (result.status == Status::kMeasured && result.measured.samples.empty())
      return wrong("a measured point has no samples");
  }
  return finished;
}

}  // namespace llmprof::bench
