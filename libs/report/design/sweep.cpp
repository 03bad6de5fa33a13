#include <fmt/format.h>

#include <algorithm>

#include "base/human.h"
#include "base/text_table.h"
#include "report/design/page.h"
#include "report/design/parts.h"
#include "report/page.h"

namespace llmprof::report {
namespace {

using analyze::design::Sweep;
using analyze::design::SweepPoint;
using base::Align;
using base::TextTable;

std::string fits_cell(const SweepPoint& p) { return p.fits ? (*p.fits ? "yes" : "no") : "-"; }

std::int64_t value_of(const SweepPoint& p, std::string_view axis) {
  return axis == "batch" ? p.load.batch : axis == "prompt" ? p.load.prompt : p.load.context;
}

// A column for each axis, then those of the kind of sweep.
TextTable table_of(const Sweep& sweep, std::vector<TextTable::Column> columns,
                   std::vector<std::string> (*cells_of)(const SweepPoint&)) {
  for (auto axis = sweep.axes.rbegin(); axis != sweep.axes.rend(); ++axis)
    columns.insert(columns.begin(), {axis->name});
  TextTable table(std::move(columns));
  for (const SweepPoint& p : sweep.points) {
    std::vector<std::string> cells = cells_of(p);
    for (auto axis = sweep.axes.rbegin(); axis != sweep.axes.rend(); ++axis) {
      cells.insert(cells.begin(), std::to_string(value_of(p, axis->name)));
    }
    table.add(std::move(cells));
  }
  return table;
}

TextTable inference_table(const Sweep& sweep) {
  return table_of(sweep,
                  {{"memory"},
                   {"fits", Align::kLeft},
                   {"TTFT"},
                   {"by", Align::kLeft},
                   {"TPOT"},
                   {"by", Align::kLeft},
                   {"FLOP/B"},
                   {"tok/s/seq"},
                   {"tokens/s"}},
                  [](const SweepPoint& p) {
                    return std::vector<std::string>{
                        base::human_bytes(p.memory_bytes), fits_cell(p),
                        floor_cell(p.first.floor.ns),      bound_cell(p.first.floor),
                        floor_cell(p.decode.floor.ns),     bound_cell(p.decode.floor),
                        number_cell(p.decode.intensity()), number_cell(p.tokens_per_s_per_sequence),
                        number_cell(p.tokens_per_s)};
                  });
}

TextTable training_table(const Sweep& sweep) {
  return table_of(sweep,
                  {{"memory"},
                   {"fits", Align::kLeft},
                   {"FLOPs"},
                   {"bytes"},
                   {"FLOP/B"},
                   {"step"},
                   {"by", Align::kLeft},
                   {"tokens/s"}},
                  [](const SweepPoint& p) {
                    return std::vector<std::string>{base::human_bytes(p.memory_bytes), fits_cell(p),
                                                    amount_cell(p.first.flops),        base::human_bytes(p.first.bytes),
                                                    number_cell(p.first.intensity()),  floor_cell(p.first.floor.ns),
                                                    bound_cell(p.first.floor),         number_cell(p.tokens_per_s)};
                  });
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
  const std::string fixed = held_fixed(page);
  std::string out = head_section(page.design, style) + style.heading(fixed.empty() ? "Sweep" : "Sweep with " + fixed);
  out += (page.sweep.train ? training_table(page.sweep) : inference_table(page.sweep)).render(kWidth);
  out += wrapped((page.sweep.train
                      ? "Times are floors, tokens/s what they allow; by: what bounds them. "
                      : "Times are floors, tokens/s what they allow; by: what bounds them. FLOP/B: of decode. ") +
                 peaks_sentence(page.design));
  if (page.sweep.axes.back().values.size() > 1) {
    out += "\n" + plot_text(to_plot(page), {.width = kWidth, .height = 16, .unicode = true, .colour = colour});
  }
  return out;
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
