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

TextTable inference_table(const Sweep& sweep) {
  TextTable table({{"batch"},
                   {"prompt"},
                   {"context"},
                   {"memory"},
                   {"fits", Align::kLeft},
                   {"TTFT"},
                   {"bound by", Align::kLeft},
                   {"TPOT"},
                   {"bound by", Align::kLeft},
                   {"FLOP/B"},
                   {"tok/s/seq"},
                   {"tokens/s"}});
  for (const SweepPoint& p : sweep.points) {
    table.add({std::to_string(p.load.batch), std::to_string(p.load.prompt), std::to_string(p.load.context),
               base::human_bytes(p.memory_bytes), fits_cell(p), floor_cell(p.first.floor.ns), bound_cell(p.first.floor),
               floor_cell(p.decode.floor.ns), bound_cell(p.decode.floor), number_cell(p.decode.intensity()),
               number_cell(p.tokens_per_s_per_sequence), number_cell(p.tokens_per_s)});
  }
  return table;
}

TextTable training_table(const Sweep& sweep) {
  TextTable table({{"batch"},
                   {"tokens"},
                   {"memory"},
                   {"fits", Align::kLeft},
                   {"FLOPs"},
                   {"bytes"},
                   {"FLOP/B"},
                   {"bound by", Align::kLeft},
                   {"step"},
                   {"tokens/s"}});
  for (const SweepPoint& p : sweep.points) {
    table.add({std::to_string(p.load.batch), std::to_string(p.load.prompt), base::human_bytes(p.memory_bytes),
               fits_cell(p), amount_cell(p.first.flops), base::human_bytes(p.first.bytes),
               number_cell(p.first.intensity()), bound_cell(p.first.floor), floor_cell(p.first.floor.ns),
               number_cell(p.tokens_per_s)});
  }
  return table;
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
    return {"tokens/s at most", "tokens/s", [](const SweepPoint& q) { return q.tokens_per_s; }};
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

}  // namespace

std::string to_text(const SweepPage& page, bool colour) {
  const Style style{colour};
  std::string out = head_section(page.design, style) + style.heading("Sweep");
  out += (page.sweep.train ? training_table(page.sweep) : inference_table(page.sweep)).render(kWidth);
  out += wrapped("Times are floors, tokens/s what they allow. FLOP/B and tok/s/seq: of decode. " +
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
            .note = page.design.roof.device,
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
  return plot;
}

}  // namespace llmprof::report
