// Requests over time as JSON: docs/format/page.md, requests.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <ranges>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "base/fields_json.h"
#include "base/json.h"
#include "pictures/requests.h"

namespace llmprof::pictures {
namespace {

using analyze::RequestFigures;
using base::Json;

constexpr std::size_t kQuantiles = 100;

// Six digits: more are not known.
Json rounded(const Json& value) {
  if (!value.is_number_float() || value.get<double>() == 0) return value;
  const double scale = std::pow(10.0, 5 - std::floor(std::log10(std::fabs(value.get<double>()))));
  return std::round(value.get<double>() * scale) / scale;
}

// Objects with the same keys as columns.
Json columns_of(const std::vector<Json>& rows) {
  Json out = Json::object();
  for (const Json& row : rows)
    for (const auto& [key, value] : row.items()) out[key].push_back(rounded(value));
  return out;
}

RequestFigures from_origin(RequestFigures figures, std::int64_t origin_ns) {
  figures.arrival_ns -= origin_ns;
  for (auto* moment :
       {&figures.sent_ns, &figures.scheduled_ns, &figures.first_token_ns, &figures.last_token_ns, &figures.end_ns})
    if (*moment) **moment -= origin_ns;
  return figures;
}

Json row_json(const RequestLane& lane, std::int64_t origin_ns) {
  Json row = base::fields_json(from_origin(lane.figures, origin_ns));
  for (std::size_t i = 0; i < lane.work_ns.size(); ++i) row[analyze::kWorkKinds[i].column] = lane.work_ns[i];
  Json& by = row["stalled_most_by"] = Json::array();
  for (const RequestBlame& blame : lane.stalled_by) by.push_back({blame.id, base::text_or_null(blame.name), blame.ns});
  row["from_ns"] = lane.begin_ns() - origin_ns, row["to_ns"] = lane.end_ns() - origin_ns;
  Json& in_states = row["in_states"] = Json::array();
  for (std::size_t i = 0; i < lane.in_states.size(); ++i)
    if (lane.in_states[i].ns > 0) in_states.push_back({i, lane.in_states[i].ns, lane.in_states[i].steps});
  Json& client = row["client"] = nullptr;
  if (!lane.client) return row;
  const Json seen = base::fields_json(from_origin(*lane.client, origin_ns));
  for (const char* key : {"arrival_ns", "sent_ns", "first_token_ns", "last_token_ns", "end_ns", "ttft_ns", "tpot_ns",
                          "e2e_ns", "status", "error"})
    client[key] = seen[key];
  return row;
}

bool has_failed(const RequestFigures& figures) {
  const std::string& status = figures.status;
  return !figures.error.empty() || (!status.empty() && status != "finished" && status != "length");
}

using Picked = std::vector<const RequestLane*>;

// Where there are too many: those that failed, those that took longest, and of the others as many as fit, evenly.
Picked picked(Picked all, std::size_t most) {
  if (all.size() <= most) return all;
  std::unordered_set<const RequestLane*> kept;
  const auto keep = [&](std::size_t count, auto&& value) {
    Picked sorted;
    for (const RequestLane* lane : all)
      if (value(lane->figures) > 0) sorted.push_back(lane);
    std::ranges::stable_sort(sorted, std::ranges::greater{},
                             [&](const RequestLane* lane) { return value(lane->figures); });
    for (std::size_t i = 0; i < std::min(count, sorted.size()); ++i) kept.insert(sorted[i]);
  };
  keep(most / 4, [](const RequestFigures& figures) { return std::int64_t{has_failed(figures)}; });
  keep(most / 8, [](const RequestFigures& figures) { return figures.ttft_ns.value_or(0); });
  keep(most / 8, [](const RequestFigures& figures) { return figures.e2e_ns.value_or(0); });
  const std::size_t room = most - kept.size();
  for (std::size_t i = 0; i < room; ++i) kept.insert(all[i * all.size() / room]);
  std::erase_if(all, [&](const RequestLane* lane) { return !kept.contains(lane); });
  return all;
}

using Parts = std::vector<std::vector<RequestPart>>;  // by lane

Json parts_json(const Parts& parts, std::int64_t origin_ns) {
  Json request = Json::array(), state = Json::array(), begin = Json::array(), end = Json::array(),
       steps = Json::array(), stalled = Json::array();
  for (std::size_t lane = 0; lane < parts.size(); ++lane) {
    for (const RequestPart& part : parts[lane]) {
      request.push_back(lane);
      state.push_back(static_cast<int>(part.state));
      begin.push_back(part.begin_ns - origin_ns);
      end.push_back(part.end_ns - origin_ns);
      steps.push_back(part.steps);
      stalled.push_back(part.stalled_ns);
    }
  }
  return {{"request", std::move(request)}, {"state", std::move(state)}, {"begin", std::move(begin)},
          {"end", std::move(end)},         {"steps", std::move(steps)}, {"stalled_ns", std::move(stalled)}};
}

// Parts as fine as the picture needs, coarser where there would be too many.
Parts fitting_parts(const Picked& lanes, Window window, int width, std::size_t most, std::int64_t& pixel_ns) {
  for (pixel_ns = std::max<std::int64_t>(1, (window.end_ns - window.begin_ns) / std::max(1, width));; pixel_ns *= 2) {
    Parts parts;
    std::size_t count = 0;
    for (const RequestLane* lane : lanes) {
      parts.push_back(merged_parts(lane->parts, window, pixel_ns));
      count += parts.back().size();
    }
    if (count <= most || pixel_ns > window.end_ns - window.begin_ns) return parts;
  }
}

Json distributions(const std::vector<RequestLane>& lanes) {
  struct Metric {
    const char* name;
    std::optional<std::int64_t> RequestFigures::*value;
  };
  static constexpr Metric kMetrics[] = {
      {"TTFT", &RequestFigures::ttft_ns}, {"TPOT", &RequestFigures::tpot_ns}, {"E2E", &RequestFigures::e2e_ns}};
  Json out = Json::array();
  for (const Metric& metric : kMetrics) {
    std::map<std::string, std::vector<std::int64_t>, std::greater<>> by_source;  // server before client
    const auto add = [&](const RequestFigures& figures) {
      const std::optional<std::int64_t> value = figures.*metric.value;
      if (value && !figures.warm_up) by_source[figures.source].push_back(*value);
    };
    for (const RequestLane& lane : lanes) {
      add(lane.figures);
      if (lane.client) add(*lane.client);
    }
    for (auto& [source, values] : by_source) {
      std::ranges::sort(values);
      Json ns = Json::array(), share = Json::array();
      const std::size_t points = std::min(values.size(), kQuantiles);
      for (std::size_t i = 1; i <= points; ++i) {
        const std::size_t rank = (i * values.size() + points - 1) / points;  // that many are not above it
        ns.push_back(values[rank - 1]);
        share.push_back(rounded(static_cast<double>(rank) / static_cast<double>(values.size())));
      }
      out.push_back({{"metric", metric.name}, {"source", source}, {"count", values.size()},
                     {"ns", std::move(ns)},   {"share", std::move(share)}});
    }
  }
  return out;
}

// Members of steps as columns; texts are places in `names`.
class MemberColumns {
 public:
  std::size_t rows() const { return rows_; }
  // Without the steps that are there already; false, and nothing is added, where that would be too many.
  bool add(const trace::Columns& found, std::size_t most) {
    std::vector<std::size_t> wanted;
    std::set<std::int64_t> steps;
    for (std::size_t row = 0; row < found.rows(); ++row) {
      if (steps_.contains(found.values[0][row])) continue;
      wanted.push_back(row);
      steps.insert(found.values[0][row]);
    }
    if (rows_ + wanted.size() > most) return false;
    rows_ += wanted.size();
    steps_.merge(steps);
    static const std::set<std::string> kTexts = {"stage", "request", "stalled_by"};
    for (std::size_t i = 0; i < found.values.size(); ++i) {
      const std::string& key = found.names_of_columns[i];
      Json& column = columns_[key];
      if (column.is_null()) column = Json::array();
      for (const std::size_t row : wanted) {
        const std::int64_t value = found.values[i][row];
        if (kTexts.contains(key))
          column.push_back(name(found.names[static_cast<std::size_t>(value)]));
        else
          column.push_back(value == trace::Columns::kNull ? Json(nullptr) : Json(value));
      }
    }
    return true;
  }
  Json take(Json requests) {
    columns_["names"] = std::move(names_);
    return {{"requests", std::move(requests)}, {"columns", std::move(columns_)}};
  }

 private:
  std::int64_t name(const std::string& text) {
    const auto [found, is_new] = numbers_.try_emplace(text, static_cast<std::int64_t>(names_.size()));
    if (is_new) names_.push_back(text);
    return found->second;
  }
  Json columns_ = Json::object(), names_ = Json::array();
  std::unordered_map<std::string, std::int64_t> numbers_;
  std::set<std::int64_t> steps_;
  std::size_t rows_ = 0;
};

// Whose steps a reader looks at first.
std::vector<const RequestLane*> notable(const std::vector<RequestLane>& lanes) {
  Picked all, out;
  for (const RequestLane& lane : lanes)
    if (lane.figures.steps > 0) all.push_back(&lane);
  const auto by = [&](auto&& value, std::size_t place_from_top) {
    if (all.empty()) return;
    std::ranges::stable_sort(all, std::ranges::greater{},
                             [&](const RequestLane* lane) { return value(lane->figures); });
    if (std::ranges::find(out, all[place_from_top]) == out.end()) out.push_back(all[place_from_top]);
  };
  const auto stalled = [](const RequestFigures& figures) { return figures.stalled_ns.value_or(0); };
  const auto ttft = [](const RequestFigures& figures) { return figures.ttft_ns.value_or(0); };
  const auto e2e = [](const RequestFigures& figures) { return figures.e2e_ns.value_or(0); };
  by(stalled, 0), by(ttft, 0), by(e2e, 0), by(ttft, all.size() / 2);
  by([](const RequestFigures& figures) { return figures.preemptions.value_or(0); }, 0);
  by(e2e, all.size() / 2), by(ttft, all.empty() ? 0 : all.size() - 1);
  return out;
}

// Requests whose steps a file has one by one: all where there is room, else the notable ones.
Result<Json> members_json(const trace::Run& run, const std::vector<RequestLane>& lanes, std::int64_t origin_ns,
                          std::size_t most) {
  MemberColumns members;
  Json requests = Json::array();
  std::size_t rows = 0;
  for (const RequestLane& lane : lanes) rows += static_cast<std::size_t>(lane.figures.steps);
  if (rows == 0 || most == 0) return members.take(std::move(requests));
  if (rows <= most) {
    LLMPROF_LET(const trace::Columns found, run.columns(members_sql("step_id", "SELECT id FROM step", origin_ns)));
    if (members.add(found, 2 * most)) {  // the engine has a row of each step
      for (const RequestLane& lane : lanes)
        if (lane.figures.steps > 0) requests.push_back(lane.figures.id);
      return members.take(std::move(requests));
    }
  }
  for (const RequestLane* lane : notable(lanes)) {
    const std::string steps = fmt::format("SELECT step_id FROM step_member WHERE request_id = {}", lane->figures.id);
    LLMPROF_LET(const trace::Columns found, run.columns(members_sql("step_id", steps, origin_ns)));
    if (members.add(found, most)) requests.push_back(lane->figures.id);
  }
  return members.take(std::move(requests));
}

}  // namespace

Json RequestPicture::window(Window window, int width, const RequestLimits& limits) const {
  Picked all;
  for (const RequestLane& lane : lanes_)
    if (lane.begin_ns() <= window.end_ns && lane.end_ns() >= window.begin_ns) all.push_back(&lane);
  const std::size_t count = all.size();
  const Picked shown = picked(std::move(all), limits.requests);
  std::vector<Json> rows;
  for (const RequestLane* lane : shown) rows.push_back(row_json(*lane, span_.begin_ns));
  std::int64_t pixel_ns = 1;
  const Parts parts = fitting_parts(shown, window, width, limits.parts, pixel_ns);
  return {{"span", {span_.begin_ns, span_.end_ns}},
          {"window", {window.begin_ns, window.end_ns}},
          {"pixel_ns", pixel_ns},
          {"in_window", count},
          {"states", kRequestStates},
          {"rows", columns_of(rows)},
          {"parts", parts_json(parts, span_.begin_ns)}};
}

Result<Json> RequestPicture::overview(const trace::Run& run, const RequestLimits& limits) const {
  constexpr int kWidth = 3000;
  Json out = window(span_, kWidth, limits);
  Json& works = out["works"] = Json::array();
  for (const analyze::WorkKind& kind : analyze::kWorkKinds)
    works.push_back({{"key", kind.column}, {"work", kind.work}, {"rule", kind.rule}});
  LLMPROF_LET(const std::vector<Curve> curves, request_curves(run, lanes_, span_));
  Json& all = out["curves"] = Json::array();
  for (const Curve& curve : curves) {
    Json ts = Json::array(), low = Json::array(), high = Json::array();
    for (const std::int64_t at_ns : curve.ts_ns) ts.push_back(at_ns - span_.begin_ns);
    for (const double value : curve.low) low.push_back(rounded(value));
    for (const double value : curve.high) high.push_back(rounded(value));
    all.push_back({{"group", curve.group}, {"name", curve.name}, {"unit", curve.unit},
                   {"ts", std::move(ts)}, {"low", std::move(low)}, {"high", std::move(high)}});
  }
  out["distributions"] = distributions(lanes_);
  LLMPROF_LET(out["members"], members_json(run, lanes_, span_.begin_ns, limits.member_rows));
  return out;
}

}  // namespace llmprof::pictures
