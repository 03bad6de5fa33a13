#include "pictures/plots.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/human.h"
#include "base/json.h"
#include "pictures/page_data.h"
#include "report/layout.h"
#include "report/sections.h"
#include "report/waterfall.h"

namespace llmprof::pictures {
namespace {

using analyze::Waterfall;

// What the run can be drawn as, told from what was summarised.
std::string drawable(const analyze::Summary& summary) {
  std::string names;
  const auto add = [&](const char* name, bool there) {
    names += there ? (names.empty() ? "" : ", ") + std::string(name) : "";
  };
  add("timeline", summary.coverage.kernels + summary.coverage.ranges > 0);
  add("flame", summary.coverage.kernels > 0 || summary.host.stacks.samples > 0);
  add("waterfall", !summary.waterfalls.empty());
  add("memory", !summary.host.memory.empty() || !summary.device_memory.devices.empty());
  add("steps", !summary.step_curves.empty());
  return names.empty() ? "the run has nothing that can be drawn; llmprof report says what it has"
                       : "of this run can be drawn: " + names;
}

Error nothing(std::string_view picture, std::string_view why, const report::Page& page) {
  return {ErrorCode::kNotFound, fmt::format("no {} of {}: {}", picture, page.run, why), drawable(page.summary)};
}

// The stage that was asked for; else decode, where most time of inference goes; else the one of most time.
Result<const Waterfall*> waterfall_of(const report::Page& page, const std::string& stage) {
  const Waterfall* best = nullptr;
  for (const Waterfall& each : page.summary.waterfalls) {
    if (each.samples == 0 || each.measured_ns <= 0 || (!stage.empty() && each.stage != stage)) continue;
    if (each.stage == "decode" || best == nullptr || (best->stage != "decode" && each.measured_ns > best->measured_ns))
      best = &each;
  }
  if (best != nullptr) return best;
  return nothing("waterfall", stage.empty() ? "no stage has a known model and steps" : "none is known of " + stage,
                 page);
}

// Nothing is said of terms of nothing, and what is unknown is explained in the note: there is more room.
void tidy(report::Plot& plot) {
  constexpr std::string_view kUnknown = "unknown (";
  std::erase_if(plot.rows, [&](const report::PlotRow& row) {
    return !row.value.starts_with(kUnknown) && row.boxes.front().begin == row.boxes.front().end;
  });
  for (report::PlotRow& row : plot.rows) {
    if (!row.value.starts_with(kUnknown)) continue;
    plot.note += fmt::format("; {}: {}", row.label, row.value);
    row.value = "unknown";
  }
}

// Notes say how the picture's numbers came about.
void say_predicted(const report::Page& page, std::string& note) {
  constexpr std::string_view kMeasured = "measured";
  const std::size_t at = report::is_predicted(page) ? note.find(kMeasured) : std::string::npos;
  if (at != std::string::npos) note.replace(at, kMeasured.size(), "predicted");
}

Result<report::Plot> waterfall_picture(const report::Page& page, const PictureOptions& options) {
  LLMPROF_LET(const Waterfall* waterfall, waterfall_of(page, options.stage));
  report::Plot plot = report::plot_of(*waterfall, report::is_predicted(page) ? "predicted" : "measured");
  if (report::is_predicted(page))  // what a recording did not see is no question here
    std::erase_if(plot.rows, [](const report::PlotRow& row) { return row.value.starts_with("unknown ("); });
  std::string peaks;
  if (page.summary.peak_bandwidth) {
    const analyze::DeviceCard& device = page.summary.devices.front();
    peaks =
        fmt::format("; floor: {} {}, {} ({})",
                    page.summary.peak_flops ? base::human_rate(*page.summary.peak_flops, "FLOP/s") : "unknown FLOP/s",
                    device.type, base::human_rate(*page.summary.peak_bandwidth, "B/s"), device.peak_bandwidth_source);
  }
  plot.note = "measured, " + plot.note + peaks;
  say_predicted(page, plot.note);
  tidy(plot);
  return plot;
}

Result<report::Plot> points_picture(std::string_view picture, const trace::Run& run, const report::Page& page,
                                    const PictureOptions& options) {
  report::Plot plot;
  std::string why;
  if (picture == "roofline") {
    LLMPROF_LET(const Roofline data, roofline(run, page.summary));
    plot = roofline_plot(data, options.stage);
    why = data.why.empty() ? "no stage or operator has known FLOPs and bytes" : data.why;
    const bool points = std::any_of(plot.series.begin(), plot.series.end(),
                                    [](const report::Series& s) { return s.mark == report::Mark::kPoints; });
    if (!points) return nothing(picture, why, page);
  } else if (picture == "steps") {
    plot = steps_plot(page.summary.step_curves, options.stage);
    why = "it has no stage of three steps or more";
  } else {
    plot = memory_plot(page.summary);
    why = "memory was not read, and no allocation was recorded";
  }
  if (plot.series.empty()) return nothing(picture, why, page);
  say_predicted(page, plot.note);
  return plot;
}

// From the begin of the stage's first step to the end of its last.
Result<std::optional<Window>> window_of(const trace::Run& run, const std::string& stage) {
  LLMPROF_LET(const trace::ResultTable ends,
              run.query("SELECT min(begin_ns), max(end_ns) FROM step WHERE stage = " + trace::sql_literal(stage)));
  if (ends.rows.empty() || ends.rows[0][0].is_null()) return std::optional<Window>();
  return std::optional(Window{ends.rows[0][0].as_int(), ends.rows[0][1].as_int()});
}

Result<Timeline> timeline_of(const trace::Run& run, const report::Page& page, const PictureOptions& options) {
  TimelineRequest request{.width = std::clamp(options.width, 360, 10'000), .stage = options.stage};
  if (options.window) {
    LLMPROF_LET(const Timeline whole, timeline(run, {.width = 1}));
    request.window = Window{whole.run.begin_ns + options.window->begin_ns, whole.run.begin_ns + options.window->end_ns};
  } else if (!options.stage.empty()) {
    LLMPROF_LET(request.window, window_of(run, options.stage));
  }
  LLMPROF_LET(Timeline data, timeline(run, request));
  const bool any =
      std::any_of(data.lanes.begin(), data.lanes.end(), [](const Lane& lane) { return !lane.slices.empty(); });
  if (!any) return nothing("timeline", "nothing was recorded in this window", page);
  return data;
}

Result<Flame> flame_of(const trace::Run& run, const report::Page& page, const PictureOptions& options) {
  LLMPROF_LET(Flame data, flame(run));
  if (data.nodes.empty() || !(data.total[options.weight] > 0)) {
    constexpr std::array<const char*, 3> kMissing{"it has no GPU time", "it has no CPU time", "it moved no bytes"};
    return nothing("flame", data.why.empty() ? kMissing[options.weight] : data.why, page);
  }
  return data;
}

std::string timeline_note(const Timeline& data) {
  const auto ns = [](std::int64_t value) { return base::human_ns(static_cast<double>(value)); };
  const bool whole = data.window.begin_ns <= data.run.begin_ns && data.window.end_ns >= data.run.end_ns;
  const std::string from =
      whole ? "the whole run"
            : fmt::format("from {} after the first event on", ns(data.window.begin_ns - data.run.begin_ns));
  std::string note = fmt::format("measured; {}, {}; {} in it", ns(data.window.end_ns - data.window.begin_ns), from,
                                 report::counted(data.slices_in_window, "slice"));
  if (data.lanes_left_out > 0) note += fmt::format("; {} lanes of little time left out", data.lanes_left_out);
  return note;
}

std::string flame_note(const Flame& data, const PictureOptions& options) {
  static constexpr std::array<std::string_view, 3> kWhat{
      "GPU time of kernels, by what launched them", "CPU time by stack samples", "bytes of copies and allocations"};
  const double total = data.total[options.weight];
  std::string note = fmt::format("width: {}; all is {}", kWhat[options.weight],
                                 options.weight == 2 ? base::human_bytes(total) : base::human_ns(total));
  if (data.wrappers > 0)
    note += fmt::format("; {} hidden", report::counted(static_cast<std::int64_t>(data.wrappers), "framework wrapper"));
  return data.why.empty() ? note : note + "; " + data.why;
}

base::Json plot_json(const report::Plot& plot) {
  base::Json out;
  out["title"] = plot.title;
  out["note"] = plot.note;
  out["x"] = {{"title", plot.x.title}, {"unit", plot.x.unit}};
  out["y"] = {{"title", plot.y.title}, {"unit", plot.y.unit}};
  out["series"] = base::Json::array();
  for (const report::Series& series : plot.series) {
    base::Json points = base::Json::array();
    for (const report::PlotPoint& point : series.points) points.push_back({point.x, point.y});
    out["series"].push_back({{"name", series.name}, {"points", std::move(points)}});
  }
  return out;
}

}  // namespace

Result<report::Plot> picture_plot(std::string_view picture, const trace::Run& run, const report::Page& page,
                                  const PictureOptions& options) {
  const std::string of = options.stage.empty() ? "" : " of " + options.stage;
  report::Plot plot;
  if (picture == "timeline") {
    LLMPROF_LET(const Timeline data, timeline_of(run, page, options));
    plot = timeline_plot(data);
    plot.title = "Timeline" + of;
    plot.note = timeline_note(data);
    say_predicted(page, plot.note);
  } else if (picture == "flame") {
    LLMPROF_LET(const Flame data, flame_of(run, page, options));
    plot = flame_plot(data, options.weight, options.stage, options.width);
    plot.title = "Where the time went, by call path" + of;
    plot.note = flame_note(data, options);
  } else {
    LLMPROF_LET(
        plot, picture == "waterfall" ? waterfall_picture(page, options) : points_picture(picture, run, page, options));
  }
  if (!options.title.empty()) plot.title = options.title;
  return plot;
}

Result<base::Json> picture_data(std::string_view picture, const trace::Run& run, const report::Page& page,
                                const PictureOptions& options) {
  if (picture == "timeline") {
    LLMPROF_LET(const Timeline data, timeline_of(run, page, options));
    return to_json(data);
  }
  if (picture == "flame") {
    LLMPROF_LET(const Flame data, flame_of(run, page, options));
    return to_json(data);
  }
  if (picture == "roofline") {
    LLMPROF_LET(const Roofline data, roofline(run, page.summary));
    return to_json(data);
  }
  if (picture == "waterfall") {
    LLMPROF_TRY(waterfall_of(page, options.stage));
    return report::waterfall_json(page);
  }
  LLMPROF_LET(const report::Plot plot, points_picture(picture, run, page, options));
  return plot_json(plot);
}

}  // namespace llmprof::pictures
