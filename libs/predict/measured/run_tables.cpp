#include "predict/measured/run_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/errors.h"
#include "base/human.h"
#include "base/numbers.h"
#include "base/strings.h"
#include "model/cost.h"

namespace llmprof::predict {
namespace {

constexpr const char* kPoints = R"(
SELECT b.id, b.op, b.type, b.name, coalesce(b.implementation, ''), b.median_ns, b.graph_ns, b.clock_mhz,
  string_agg(a.axis || '=' || a.value, ' ' ORDER BY a.place) AS axes
FROM bench b JOIN bench_axis a ON a.bench_id = b.id
WHERE b.status = 'measured' AND b.name IS NOT NULL AND b.median_ns > 0
GROUP BY ALL ORDER BY b.id)";
constexpr const char* kDevice = R"(
SELECT any_value(d.name), any_value(coalesce(d.driver, '')), (SELECT count(*) FROM bench WHERE status <> 'measured')
FROM device d WHERE d.id IN (SELECT device_id FROM bench))";
constexpr const char* kLatencies = "SELECT type, value FROM peak WHERE quantity = 'latency'";

struct BenchedPoint {
  std::string op, implementation;
  std::vector<std::string> parts;
  std::map<std::string, std::int64_t, std::less<>> axes;
  double kernels_ns = 0;
  std::optional<double> graph_ns, clock_mhz;

  double axis(std::string_view name) const {
    const auto found = axes.find(name);
    return found == axes.end() ? 0 : static_cast<double>(found->second);
  }
};

// "batch=1 seq=8"
std::map<std::string, std::int64_t, std::less<>> axes_in(std::string_view text) {
  std::map<std::string, std::int64_t, std::less<>> axes;
  for (const std::string_view word : base::split(text, ' ')) {
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos) continue;
    const auto value = base::parse_number<std::int64_t>(word.substr(equals + 1));
    if (value) axes.emplace(std::string(word.substr(0, equals)), *value);
  }
  return axes;
}

Result<std::vector<BenchedPoint>> points_of(const trace::Run& run) {
  LLMPROF_LET(const trace::ResultTable table, run.query(kPoints));
  std::vector<BenchedPoint> points;
  for (const auto& row : table.rows) {
    BenchedPoint point{.op = row[1].text, .implementation = row[4].text, .axes = axes_in(row[8].text)};
    for (const std::string_view part : base::split(row[3].text, ',')) point.parts.emplace_back(base::trimmed(part));
    point.kernels_ns = row[5].as_double();
    point.graph_ns = row[6].maybe_double();
    point.clock_mhz = row[7].maybe_double();
    points.push_back(std::move(point));
  }
  return points;
}

// Where a point stands in the table of its part.
std::vector<double> place_of(const BenchedPoint& point, std::string_view part) {
  if (point.op == "attention_decode") return {0, 0, point.axis("batch"), point.axis("context")};
  if (point.op == "attention_prefill") return {point.axis("seq"), 0, 0, 0};
  if (point.op == "attention_mixed") {
    const double decodes = point.axis("batch");
    return {point.axis("chunk"), point.axis("prior"), decodes, decodes > 0 ? point.axis("context") : 0};
  }
  if (point.op == "moe") {
    const auto experts = static_cast<std::int64_t>(point.axis("experts"));
    const double tokens = point.axis("batch") * point.axis("seq");
    const model::Experts chosen{
        .all = experts, .here = experts, .per_token = static_cast<std::int64_t>(point.axis("top_k"))};
    return {tokens, model::distinct_experts(chosen, tokens)};
  }
  if (part == "qk_norm" || point.op == "sampling") return {point.axis("batch")};
  return {point.axis("batch") * point.axis("seq")};
}

using Place = std::pair<std::string, std::vector<double>>;

// Times of one call by its place: those of different operators add up, those of the same are the same call.
class RowsByPlace {
 public:
  void add(const BenchedPoint& point) {
    for (const std::string& part : point.parts) {
      const std::vector<double> at = place_of(point, part);
      Row& row = rows_[{part, at}];
      if (!row.operators.insert(point.op).second) continue;
      if (row.operators.size() == 1) order_.push_back({part, at});
      row.kernels_ns += point.kernels_ns;
      row.graph_ns += point.graph_ns.value_or(point.kernels_ns);
      row.graphs = row.graphs || point.graph_ns.has_value();
    }
  }

  std::vector<MeasuredRow> take() const {
    std::vector<MeasuredRow> rows;
    for (const Place& place : order_) {
      const Row& row = rows_.at(place);
      rows.push_back(
          {place.first, place.second, row.kernels_ns, row.graphs ? std::optional(row.graph_ns) : std::nullopt});
    }
    return rows;
  }

 private:
  struct Row {
    std::set<std::string> operators;
    double kernels_ns = 0, graph_ns = 0;
    bool graphs = false;
  };
  std::map<Place, Row> rows_;
  std::vector<Place> order_;
};

// Linear between measured places, in proportion beyond the last: for what has no roof here.
double between(const std::map<double, double>& values, double at) {
  if (values.empty()) return 0;
  const auto high = values.lower_bound(at);
  if (high == values.begin()) return high->second;
  if (high == values.end()) return values.rbegin()->second * at / values.rbegin()->first;
  const auto low = std::prev(high);
  return low->second + (high->second - low->second) * (at - low->first) / (high->first - low->first);
}

// Chunks alone by implementation: which one the table has, and what the others take.
class ChunkTimes {
 public:
  explicit ChunkTimes(const std::vector<BenchedPoint>& points) {
    for (const BenchedPoint& point : points) {
      if (point.op != "attention_prefill") continue;
      times_[point.axis("seq")].emplace(point.implementation, point.kernels_ns);
    }
  }

  // The fastest for a chunk that begins its prompt.
  bool is_chosen(const BenchedPoint& point) const {
    const auto& times = times_.at(point.axis("seq"));
    return std::ranges::all_of(times, [&](const auto& each) { return each.second >= point.kernels_ns; });
  }

  // What a time by this implementation is to be multiplied with; nullopt: it was not measured alone.
  std::optional<double> scale(double chunk, const std::string& implementation) const {
    const auto found = times_.find(chunk);
    if (found == times_.end() || !found->second.contains(implementation)) return std::nullopt;
    double best = found->second.at(implementation);
    const double own = best;
    for (const auto& [name, ns] : found->second) best = std::min(best, ns);
    return best / own;
  }

 private:
  std::map<double, std::map<std::string, double>> times_;
};

class Assembly {
 public:
  explicit Assembly(std::vector<BenchedPoint> points) : points_(std::move(points)), chunks_(points_) {}

  void fill(MeasuredTables& tables) {
    for (const BenchedPoint& point : points_) sort(point);
    note_mixed(tables);
    note_scaled(tables);
    tables.rows = rows_.take();
    for (MeasuredRow& row : tables.rows) add_cache_writes(row);
    std::vector<double> clocks;
    for (const BenchedPoint& point : points_) {
      if (point.clock_mhz) clocks.push_back(*point.clock_mhz);
    }
    if (clocks.empty()) return;
    std::ranges::nth_element(clocks, clocks.begin() + static_cast<std::ptrdiff_t>(clocks.size() / 2));
    tables.clock_mhz = clocks[clocks.size() / 2];
  }

 private:
  void sort(const BenchedPoint& point) {
    if (point.op == "kv_write") {
      const double tokens = point.axis("batch") * point.axis("seq");
      writes_[tokens] = point.kernels_ns;
      graph_writes_[tokens] = point.graph_ns.value_or(point.kernels_ns);
    } else if (point.op == "attention_prefill") {
      if (!chunks_.is_chosen(point)) return;
      prompts_[point.axis("seq")] = point.kernels_ns;
      rows_.add(point);
    } else if (point.op == "attention_mixed" && point.axis("batch") > 0) {
      mixed_.push_back(&point);
    } else if (point.op == "attention_mixed") {
      add_later_chunk(point);
    } else {
      if (point.op == "attention_decode") decodes_[{point.axis("batch"), point.axis("context")}] = point.kernels_ns;
      rows_.add(point);
    }
  }

  void add_later_chunk(const BenchedPoint& point) {
    const auto scale = chunks_.scale(point.axis("chunk"), point.implementation);
    BenchedPoint scaled = point;
    scaled.kernels_ns *= scale.value_or(1);
    if (scaled.graph_ns) *scaled.graph_ns *= scale.value_or(1);
    scales_.push_back(scale.value_or(1));
    rows_.add(scaled);
  }

  void add_cache_writes(MeasuredRow& row) const {
    if (row.op != "attention") return;
    const double tokens = row.at[0] + row.at[2];
    row.kernels_ns += between(writes_, tokens);
    if (row.graph_ns) *row.graph_ns += between(graph_writes_, tokens);
  }

  void note_mixed(MeasuredTables& tables) const {
    std::vector<double> ratios;
    for (const BenchedPoint* point : mixed_) {
      const auto chunk = prompts_.find(point->axis("chunk"));
      const auto decode = decodes_.find({point->axis("batch"), point->axis("context")});
      if (chunk == prompts_.end() || decode == decodes_.end() || point->axis("prior") > 0) continue;
      ratios.push_back(point->kernels_ns / (chunk->second + decode->second));
    }
    if (ratios.empty()) return;
    const auto [least, most] = std::ranges::minmax(ratios);
    tables.notes.push_back(
        fmt::format("attention of chunks with decodes: {:.2f} to {:.2f} of the sum of both, {} point{}", least, most,
                    ratios.size(), ratios.size() == 1 ? "" : "s"));
  }

  void note_scaled(MeasuredTables& tables) const {
    if (scales_.empty()) return;
    const auto [least, most] = std::ranges::minmax(scales_);
    if (least == 1 && most == 1) return;
    tables.notes.push_back(
        fmt::format("attention of chunks with tokens before them: measured by another kernel than those without, "
                    "times scaled by {:.2f} to {:.2f}",
                    least, most));
  }

  std::vector<BenchedPoint> points_;
  ChunkTimes chunks_;
  RowsByPlace rows_;
  std::map<double, double> writes_, graph_writes_, prompts_;
  std::map<std::pair<double, double>, double> decodes_;
  std::vector<const BenchedPoint*> mixed_;
  std::vector<double> scales_;
};

Result<LaunchCosts> launch_costs(const trace::Run& run) {
  LLMPROF_LET(const trace::ResultTable table, run.query(kLatencies));
  LaunchCosts costs;
  for (const auto& row : table.rows) {
    const double ns = row[1].as_double() * 1e9;
    if (row[0].text == "kernel launch") costs.launch_ns = ns;
    if (row[0].text == "kernel after kernel") costs.queued_ns = ns;
    if (row[0].text == "graph launch, per node") costs.graph_node_ns = ns;
  }
  if (costs.launch_ns > 0) costs.source = "measured: empty kernels";
  return costs;
}

}  // namespace

std::optional<ForCommand> for_command(const std::vector<std::string>& command) {
  ForCommand found;
  const auto take = [&](std::size_t i, std::string_view flag) -> std::optional<std::string> {
    if (command[i] == flag) return i + 1 < command.size() ? std::optional(command[i + 1]) : std::nullopt;
    const std::string with_value = std::string(flag) + "=";
    if (command[i].starts_with(with_value)) return command[i].substr(with_value.size());
    return std::nullopt;
  };
  for (std::size_t i = 0; i < command.size(); ++i) {
    if (const auto model = take(i, "--for")) found.model = *model;
    if (const auto type = take(i, "--dtype")) found.dtype = *type;
    if (const auto degree = take(i, "--tp")) found.tensor = base::parse_number<std::int64_t>(*degree).value_or(0);
  }
  if (found.model.empty() || found.tensor < 1) return std::nullopt;
  return found;
}

Result<MeasuredTables> measured_tables(const trace::Run& run) {
  const auto asked = for_command(run.info().command);
  if (!asked) {
    return Error{ErrorCode::kUsage, fmt::format("{} is no run of `llmprof bench --for MODEL`", run.folder()),
                 "llmprof bench --for MODEL -o NAME measures what a prediction of that model needs"};
  }
  MeasuredTables tables{.model = asked->model,
                        .llmprof_version = run.info().llmprof_version,
                        .run = run.folder(),
                        .dtype = asked->dtype,
                        .tensor = asked->tensor};
  LLMPROF_LET(std::vector<BenchedPoint> points, points_of(run));
  if (points.empty()) {
    return Error{ErrorCode::kNotFound, fmt::format("{}: no point was measured", run.folder()),
                 "llmprof bench --resume goes on with a run that was stopped"};
  }
  LLMPROF_LET(const trace::ResultTable device, run.query(kDevice));
  if (!device.rows.empty()) {
    tables.device = device.rows[0][0].text;
    tables.driver = device.rows[0][1].text;
    tables.skipped = device.rows[0][2].as_int();
  }
  LLMPROF_LET(tables.launch, launch_costs(run));
  Assembly(std::move(points)).fill(tables);
  return tables;
}

Result<OperatorTables> to_tables(const MeasuredTables& measured, TimesOf times) {
  OperatorTables tables;
  for (const MeasuredRow& row : measured.rows) {
    const auto added = tables.add(row.op, row.at, row.ns(times));
    if (!added) return corrupt_error("{}: {}: {}", measured.run, row.op, added.error().message);
  }
  tables.source.folder = measured.run;
  tables.source.tensor = measured.tensor;
  tables.source.device = measured.device;
  tables.source.model = measured.model;
  tables.source.engine = "llmprof " + measured.llmprof_version;
  tables.source.files.push_back({"bench.parquet", times == TimesOf::kInGraph ? "bench, in a graph" : "bench",
                                 static_cast<std::int64_t>(measured.rows.size())});
  return tables;
}

Result<OperatorTables> tables_from_run(const trace::Run& run, TimesOf times) {
  LLMPROF_LET(const MeasuredTables measured, measured_tables(run));
  return to_tables(measured, times);
}

}  // namespace llmprof::predict
