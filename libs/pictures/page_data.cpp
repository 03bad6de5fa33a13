#include "pictures/page_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/json.h"
#include "pictures/requests.h"
#include "report/table.h"

namespace llmprof::pictures {
namespace {

using base::Json;

constexpr std::size_t kMostStages = 8;
constexpr int kDetailWidth = 20000;

struct Chosen {
  std::string which;
  const StepWindow* step;
};

// Nearest rank: a step that really happened.
std::vector<Chosen> choose(std::vector<const StepWindow*> steps) {
  const StepWindow* first = steps.front();
  std::sort(steps.begin(), steps.end(), [](const StepWindow* a, const StepWindow* b) {
    return a->window.end_ns - a->window.begin_ns < b->window.end_ns - b->window.begin_ns;
  });
  std::vector<Chosen> chosen{{"median", steps[(steps.size() - 1) / 2]}};
  for (const Chosen& also : {Chosen{"slowest", steps.back()}, Chosen{"first", first}}) {
    const bool is_new =
        std::none_of(chosen.begin(), chosen.end(), [&](const Chosen& c) { return c.step == also.step; });
    if (is_new) chosen.push_back(also);
  }
  return chosen;
}

// How much of each picture a page holds. The first that fits is taken.
struct Level {
  std::size_t timeline_slices, detail_slices;  // of the whole run; of each step
  std::size_t details, flame_nodes, rows;      // rows: of the longest tables of the report
  RequestLimits requests;
};
constexpr std::array<Level, 5> kLevels = {{{20000, 4000, 24, 6000, 5000, {2000, 30000, 8000}},
                                           {12000, 2500, 8, 3000, 3000, {1500, 15000, 4000}},
                                           {6000, 1500, 6, 1500, 1200, {1000, 8000, 2000}},
                                           {2000, 600, 4, 600, 400, {500, 4000, 1000}},
                                           {600, 150, 2, 150, 100, {200, 1000, 0}}}};
constexpr int kWidth = 12000;  // pixels, unless that makes too many slices: work is often in a small part of a run

struct Pictures {
  Timeline timeline;
  std::vector<StepDetail> details;
  FlameTrees flame;
  Roofline roofline;
};

std::size_t slices_of(const Timeline& timeline) {
  std::size_t slices = 0;
  for (const Lane& lane : timeline.lanes) slices += lane.slices.size();
  return slices;
}

Timeline with_at_most(const Timeline& fine, std::size_t slices, int width) {
  Timeline out = fine;
  for (; slices_of(out) > slices && width > 50; width = width * 2 / 3)
    out = thinned(fine, {.window = fine.window, .width = width, .stage = ""});
  return out;
}

void cut_table(Json& object, const char* name, std::size_t rows) {
  const auto table = object.find(name);
  if (table == object.end() || !table->is_array() || table->size() <= rows) return;
  table->erase(table->begin() + static_cast<std::ptrdiff_t>(rows), table->end());
}

void cut_counters(Json& counters, std::size_t rows) {
  for (const char* name : {"notes", "ranges", "unmixed", "occupancy", "stalls"}) cut_table(counters, name, rows);
  const auto stalls = counters.find("stalls");
  if (stalls == counters.end()) return;
  for (Json& kernel : *stalls) cut_table(kernel, "places", rows / 10);
}

// The longest tables of a report are sorted, most time first.
void cut_tables(Json& report, std::size_t rows) {
  for (const char* name : {"modules", "functions", "operators", "kernels", "gemms", "losses", "notes",
                           "framework_operators", "totals", "counters"})
    cut_table(report, name, rows);
  if (const auto counters = report.find("hardware_counters"); counters != report.end() && counters->is_object())
    cut_counters(*counters, rows);
}

Json details_json(const std::vector<StepDetail>& details, const Level& level) {
  Json out = Json::array();
  for (const StepDetail& detail : details) {
    if (out.size() == level.details) break;
    out.push_back({{"stage", detail.stage},
                   {"which", detail.which},
                   {"step_id", detail.step_id},
                   {"timeline", to_json(with_at_most(detail.timeline, level.detail_slices, 20000))}});
  }
  return out;
}

Json flame_json(const FlameTrees& trees, std::size_t nodes) {
  Json out = to_json(cut(trees, nodes));
  const std::optional<Flame> all = cut_with_wrappers(trees, 2 * nodes);  // many of them only pass calls on
  out["with_wrappers"] = all ? to_json(*all) : Json(nullptr);
  return out;
}

Json at_level(const Pictures& pictures, const report::Page& page, const Json& report, const Level& level) {
  Json shown = report;
  cut_tables(shown, level.rows);
  std::string name = page.run.substr(page.run.find_last_of('/', page.run.size() - 2) + 1);
  if (name.ends_with(".llmprof")) name.resize(name.size() - 8);
  return {{"name", name},
          {"report", std::move(shown)},
          {"timeline", to_json(with_at_most(pictures.timeline, level.timeline_slices, kWidth))},
          {"details", details_json(pictures.details, level)},
          {"flame", flame_json(pictures.flame, level.flame_nodes)},
          {"roofline", to_json(pictures.roofline)},
          {"steps", to_json(page.summary.step_curves)},
          {"thinned", nullptr}};
}

}  // namespace

Result<std::vector<StepDetail>> step_details(TimelineReader& reader, const std::vector<std::string>& stages) {
  const std::vector<StepWindow> all = reader.steps();
  std::vector<StepDetail> details;
  for (const std::string& stage : stages) {
    std::vector<const StepWindow*> steps;
    for (const StepWindow& step : all)
      if (step.stage == stage) steps.push_back(&step);
    if (steps.empty()) continue;
    for (const Chosen& chosen : choose(std::move(steps)))
      details.push_back({.stage = stage,
                         .which = chosen.which,
                         .step_id = chosen.step->id,
                         .timeline = {.window = chosen.step->window, .names = {}, .lanes = {}, .curves = {}}});
  }
  // The median of every stage comes first: what is cut off is then the least missed.
  const auto rank = [](const StepDetail& d) { return d.which == "median" ? 0 : d.which == "slowest" ? 1 : 2; };
  std::stable_sort(details.begin(), details.end(),
                   [&](const StepDetail& a, const StepDetail& b) { return rank(a) < rank(b); });
  if (details.size() > 3 * kMostStages) details.resize(3 * kMostStages);
  for (StepDetail& detail : details) {
    const Window window = detail.timeline.window;
    const std::int64_t margin = (window.end_ns - window.begin_ns) / 20;
    LLMPROF_LET(detail.timeline, reader.read({.window = Window{window.begin_ns - margin, window.end_ns + margin},
                                              .width = kDetailWidth,
                                              .stage = ""}));
    detail.timeline.curves.clear();
  }
  return details;
}

Result<Json> run_data(const trace::Run& run, const report::Page& page, Json report, std::size_t most_bytes) {
  report::to_json(page, report);
  report["tables"] = report::descriptions_json(&report);
  Pictures pictures;
  LLMPROF_LET(TimelineReader reader, TimelineReader::open(run));
  LLMPROF_LET(pictures.timeline, reader.read({.window = {}, .width = kWidth, .stage = ""}));
  std::vector<std::string> stages;
  for (const analyze::Stage& stage : page.summary.stages) stages.push_back(stage.name);
  LLMPROF_LET(pictures.details, step_details(reader, stages));
  LLMPROF_LET(pictures.flame, flame_trees(run));
  LLMPROF_LET(pictures.roofline, roofline(run, page.summary));
  LLMPROF_LET(const RequestPicture requests, RequestPicture::open(run, page.summary.requests));
  if (!requests.empty()) report["requests"]["all"] = Json::array();  // as columns of the picture
  Json data;
  for (std::size_t i = 0; i < kLevels.size(); ++i) {
    data = at_level(pictures, page, report, kLevels[i]);
    if (!requests.empty()) {
      LLMPROF_LET(data["requests"], requests.overview(run, kLevels[i].requests));
    }
    if (i > 0) {
      data["thinned"] = fmt::format(
          "the run has more than fits a page: its timeline has {} slices at most, {} steps are shown in full, the "
          "flame "
          "graph has {} nodes at most, tables {} rows; llmprof view shows all of it",
          kLevels[i].timeline_slices, data["details"].size(), kLevels[i].flame_nodes, kLevels[i].rows);
    }
    if (script_json(data).size() <= most_bytes) break;
  }
  return data;
}

Result<Json> run_data(const trace::Run& run, const report::Page& page, std::size_t most_bytes) {
  return run_data(run, page, Json::object(), most_bytes);
}

}  // namespace llmprof::pictures
