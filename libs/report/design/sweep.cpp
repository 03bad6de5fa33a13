#include <fmt/format.h>

#include <algorithm>

#include "report/design/page.h"
#include "report/page.h"

namespace llmprof::hw {
base::Json fields_json(const Floor& floor);
}

namespace llmprof::analyze::design {
base::Json fields_json(const SweepPoint::Pass& pass) {
  base::Json all = base::fields_json<SweepPoint::Pass>(pass);
  all["flops_per_byte"] = base::maybe(pass.intensity());
  return all;
}
}  // namespace llmprof::analyze::design

namespace llmprof::report {
namespace {

using analyze::design::Sweep;
using analyze::design::SweepPoint;
using base::Json;

std::int64_t value_of(const SweepPoint& p, std::string_view axis) {
  return axis == "batch" ? p.load.batch : axis == "prompt" ? p.load.prompt : p.load.context;
}

Json points_json(const Sweep& sweep) {
  Json points = base::fields_json(sweep.points);
  for (Json& point : points) {
    point.update(Json(point["load"]));
    point[sweep.train ? "step" : "prefill"] = std::move(point["first"]);
    if (!sweep.train) continue;
    for (const char* key : {"context", "decode", "tokens_per_s_per_sequence"}) point.erase(key);
  }
  return described("llmprof.model_sweep.points[]", points);
}

// "batch 1, prompt 1024": what the axes leave alone.
std::string held_fixed(const SweepPage& page) {
  std::string text;
  for (const char* name : {"batch", "prompt", "context"}) {
    const bool swept = std::ranges::any_of(page.sweep.axes, [&](const base::Axis& axis) { return axis.name == name; });
    if (swept || (page.sweep.train && std::string_view(name) == "context")) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, value_of(page.sweep.points.front(), name));
  }
  return text;
}

// What is drawn upwards, by the axis to the right.
struct Upwards {
  const char* title;
  const char* unit;
  std::optional<double> (*value)(const SweepPoint&);
};

std::optional<double> seconds(const std::optional<double>& ns) { return ns ? std::optional(*ns * 1e-9) : std::nullopt; }

Upwards upwards(const Sweep& sweep) {
  const SweepPoint& p = sweep.points.front();
  if (!p.first.floor.ns) return {"memory", "B", [](const SweepPoint& q) { return std::optional(q.memory_bytes); }};
  const std::string& axis = sweep.axes.back().name;
  if (sweep.train || axis == "batch") {
    return {"tokens/s at most", "", [](const SweepPoint& q) { return q.tokens_per_s; }};
  }
  if (axis == "prompt") return {"TTFT at least", "s", [](const SweepPoint& q) { return seconds(q.first.floor.ns); }};
  return {"TPOT at least", "s", [](const SweepPoint& q) { return seconds(q.decode.floor.ns); }};
}

// Values that grow by factors stand evenly on a logarithmic axis.
Scale scale_of(const std::vector<std::int64_t>& values) {
  const auto [least, most] = std::ranges::minmax(values);
  return values.size() > 2 && least > 0 && most / least >= 16 ? Scale::kLog2 : Scale::kLinear;
}

std::string series_name(const Sweep& sweep, std::size_t begin) {
  std::string name;
  std::size_t stride = 1;
  for (std::size_t i = 0; i + 1 < sweep.axes.size(); ++i) {
    stride = 1;
    for (std::size_t k = i + 1; k < sweep.axes.size(); ++k) stride *= sweep.axes[k].values.size();
    const auto& values = sweep.axes[i].values;
    name +=
        fmt::format("{}{} {}", name.empty() ? "" : ", ", sweep.axes[i].name, values[begin / stride % values.size()]);
  }
  return name.empty() ? sweep.axes.back().name : name;
}

constexpr std::size_t kMostSeries = 8;  // more cannot be told apart

std::string note_of(const SweepPage& page) {
  std::string note = page.design.roof.device;
  const auto add = [&](const std::string& text) { note += (note.empty() || text.empty() ? "" : ", ") + text; };
  add(held_fixed(page));
  const std::size_t lines = page.sweep.points.size() / page.sweep.axes.back().values.size();
  if (lines > kMostSeries) add(fmt::format("the first {} of {} lines", kMostSeries, lines));
  return note;
}

// Where a single line leaves the device's memory.
void add_guide(const Sweep& sweep, Plot& plot) {
  if (plot.series.size() != 1) return;
  for (const SweepPoint& p : sweep.points) {
    if (!p.fits || *p.fits) continue;
    plot.guides.push_back({.at = Guide::At::kX,
                           .value = static_cast<double>(value_of(p, sweep.axes.back().name)),
                           .label = "does not fit from here on"});
    return;
  }
}

}  // namespace

std::string to_text(const SweepPage& page, bool colour) {
  const Style style{colour};
  const Sweep& sweep = page.sweep;
  const std::string fixed = held_fixed(page);
  const Json points = points_json(sweep);
  std::vector<analyze::ColumnDescription> axes;
  for (const base::Axis& axis : sweep.axes) axes.push_back({.key = axis.name, .title = axis.name, .format = "count"});
  std::string out = head_section(page.design, style) + style.heading(fixed.empty() ? "Sweep" : "Sweep with " + fixed);
  out += TableText(points).rows(
      sweep.train ? "llmprof.model_sweep.points[]#training" : "llmprof.model_sweep.points[]#inference", points,
      SIZE_MAX, axes);
  out += wrapped(fmt::format("Times are floors, tokens/s what they allow; by: what bounds them. {}{}",
                             sweep.train ? "" : "FLOP/B: of decode. ", peaks_sentence(page.design)));
  if (sweep.axes.back().values.size() > 1) {
    out += "\n" + plot_text(to_plot(page), {.width = line_width(), .height = 16, .unicode = true, .colour = colour});
  }
  return out;
}

void to_json(const SweepPage& page, Json& out) {
  out.update(described("llmprof.model", head_facts(page.design)));
  out["axes"] = described_fields("llmprof.model_sweep.axes[]", page.sweep.axes);
  out["points"] = points_json(page.sweep);
}

std::string to_csv(const SweepPage& page) {
  const bool train = page.sweep.train;
  std::vector<std::string> keys = {"batch", "prompt", "memory_bytes", "fits", "tokens_per_s"};
  if (!train)
    keys = {"batch", "prompt", "context", "memory_bytes", "fits", "tokens_per_s", "tokens_per_s_per_sequence"};
  const std::vector<std::string> passes =
      train ? std::vector<std::string>{"step"} : std::vector<std::string>{"prefill", "decode"};
  for (const std::string& pass : passes) {
    for (const auto& column : analyze::find_description("llmprof.model_sweep.points[]." + pass)->columns)
      keys.push_back(pass + "." + column.key);
  }
  return to_csv(keys, points_json(page.sweep));
}

Plot to_plot(const SweepPage& page) {
  const Sweep& sweep = page.sweep;
  const base::Axis& across = sweep.axes.back();
  const Upwards up = upwards(sweep);
  Plot plot{.title = fmt::format("{}: {} by {}", model_name(page.design), up.title, across.name),
            .note = note_of(page),
            .x = {.title = across.name, .unit = "", .scale = scale_of(across.values), .prefixes = false},
            .y = {.title = up.title, .unit = up.unit, .scale = Scale::kLinear, .prefixes = true},
            .series = {},
            .guides = {}};
  const std::size_t length = across.values.size();
  for (std::size_t begin = 0; begin < sweep.points.size() && plot.series.size() < kMostSeries; begin += length) {
    Series series{.name = series_name(sweep, begin), .points = {}, .mark = Mark::kLineAndPoints};
    for (std::size_t i = 0; i < length; ++i) {
      const std::optional<double> value = up.value(sweep.points[begin + i]);
      if (value) series.points.push_back({static_cast<double>(across.values[i]), *value});
    }
    plot.series.push_back(std::move(series));
  }
  add_guide(sweep, plot);
  return plot;
}

}  // namespace llmprof::report
