#include <fmt/format.h>

#include <algorithm>

#include "base/human.h"
#include "base/json.h"
#include "report/design/whatif.h"
#include "report/page.h"

namespace llmprof::report {
namespace {

namespace design = analyze::design;
using base::Json;

constexpr std::string_view kSweepDocument = "llmprof.whatif_sweep";
constexpr std::size_t kMostChangeLines = 8;  // more cannot be told apart
constexpr std::size_t kMostSweepRows = 24;   // of a line, in the terminal
constexpr double kEvenOnLog = 16;            // values that grow by factors this large stand on a logarithmic axis

struct PointRow {
  std::string line;
  std::int64_t value = 0;
  std::optional<double> ttft_ns, ttft_least_ns, ttft_most_ns, tpot_ns, tpot_least_ns, tpot_most_ns, tokens_per_s;
  double memory_bytes = 0;
  std::optional<bool> fits;
};

struct SweepDocument {
  std::string subject;
  std::vector<std::string> changes;
  std::string device, held, by;
  std::vector<base::Axis> axes;
  std::vector<PointRow> points;
  std::vector<std::string> left_out, notes;
};

std::vector<PointRow> rows_of(const design::ChangeLine& line) {
  std::vector<PointRow> rows;
  for (const design::ChangePoint& p : line.points)
    rows.push_back({line.name, p.value, p.ttft_ns, p.ttft_least_ns, p.ttft_most_ns, p.tpot_ns, p.tpot_least_ns,
                    p.tpot_most_ns, p.tokens_per_s, p.memory_bytes, p.fits});
  return rows;
}

SweepDocument document_of(const WhatIfSweepPage& page) {
  SweepDocument out{page.subject,
                    page.changes,
                    page.device,
                    page.held,
                    std::string(design::source_name(page.sweep.source)),
                    page.sweep.axes,
                    {},
                    page.sweep.left_out,
                    page.notes};
  for (const design::ChangeLine& line : page.sweep.lines) {
    std::vector<PointRow> rows = rows_of(line);
    out.points.insert(out.points.end(), rows.begin(), rows.end());
  }
  return out;
}

// The first, the last, and evenly between them.
template <class Row>
std::vector<Row> thinned(const std::vector<Row>& rows) {
  if (rows.size() <= kMostSweepRows) return rows;
  std::vector<Row> out;
  for (std::size_t i = 0; i < kMostSweepRows; ++i) out.push_back(rows[i * (rows.size() - 1) / (kMostSweepRows - 1)]);
  return out;
}

struct Upward {
  std::string title, unit;
  std::optional<double> (*value)(const design::ChangePoint&);
};

std::optional<double> in_s(const std::optional<double>& ns) { return ns ? std::optional(*ns * 1e-9) : std::nullopt; }

Upward upward(Drawn drawn, bool floor) {
  const std::string least = floor ? " at least" : "", most = floor ? " at most" : "";
  switch (drawn) {
    case Drawn::kTtft:
      return {"TTFT" + least, "s", [](const auto& p) { return in_s(p.ttft_ns); }};
    case Drawn::kTpot:
      return {"TPOT" + least, "s", [](const auto& p) { return in_s(p.tpot_ns); }};
    case Drawn::kTokensPerS:
      return {"tokens/s" + most, "", [](const auto& p) { return p.tokens_per_s; }};
    default:
      return {.title = "memory", .unit = "B", .value = [](const auto& p) { return std::optional(p.memory_bytes); }};
  }
}

Scale change_scale(const std::vector<std::int64_t>& values) {
  const auto [least, most] = std::ranges::minmax(values);
  return values.size() > 2 && least > 0 && static_cast<double>(most) / static_cast<double>(least) >= kEvenOnLog
             ? Scale::kLog2
             : Scale::kLinear;
}

// The first value of a line that the device's memory does not hold, where the one before it does.
std::optional<std::int64_t> end_of_memory(const design::ChangeLine& line) {
  for (const design::ChangePoint& p : line.points) {
    if (p.fits && !*p.fits) return p.value;
  }
  return std::nullopt;
}

}  // namespace

Plot to_plot(const WhatIfSweepPage& page) {
  const design::ChangeSweep& sweep = page.sweep;
  const Upward up = upward(page.drawn, sweep.source == design::Source::kFloor);
  const base::Axis& across = sweep.axes.back();
  Plot plot{
      .title = fmt::format("{}: {} by {}", page.subject, up.title, across.name),
      .note = fmt::format("{}, {}, by {}", page.device, page.held, design::source_name(sweep.source)),
      .x = {.title = across.name, .unit = "", .scale = change_scale(across.values), .prefixes = false, .whole = true},
      .y = {.title = up.title, .unit = up.unit, .scale = Scale::kLinear, .prefixes = true}};
  // With two settings the changes hold for every line, so they are said once.
  if (sweep.axes.size() > 1) {
    for (const std::string& change : page.changes) plot.note += ", " + change;
  }
  for (const design::ChangeLine& line : sweep.lines) {
    if (plot.series.size() == kMostChangeLines) {
      plot.note += fmt::format(", the first {} of {} lines", kMostChangeLines, sweep.lines.size());
      break;
    }
    Series series{.name = line.name,
                  .points = {},
                  .mark = line.points.size() > 2 * kMostSweepRows ? Mark::kLine : Mark::kLineAndPoints};
    for (const design::ChangePoint& p : line.points) {
      if (const auto value = up.value(p)) series.points.push_back({static_cast<double>(p.value), *value});
    }
    if (const auto end = end_of_memory(line); end && page.drawn != Drawn::kMemory) {
      plot.guides.push_back({.at = Guide::At::kX,
                             .value = static_cast<double>(*end),
                             .label = sweep.lines.size() == 1
                                          ? fmt::format("does not fit from {}", *end)
                                          : fmt::format("{}: does not fit from {}", line.name, *end),
                             .low = plot.guides.size() % 2 == 1});
    }
    plot.series.push_back(std::move(series));
  }
  if (page.measured) plot.series.push_back({.name = "measured", .points = {*page.measured}, .mark = Mark::kPoints});
  if (page.drawn == Drawn::kMemory && page.device_bytes > 0)
    plot.guides.push_back({.at = Guide::At::kY, .value = page.device_bytes, .label = "memory of the device"});
  return plot;
}

std::string to_text(const WhatIfSweepPage& page, bool colour) {
  const Style style{colour};
  const Json nothing;
  const TableText tables(nothing);
  const std::string path = fmt::format("{}.points[]", kSweepDocument);
  std::string changes;
  for (const std::string& change : page.changes) changes += (changes.empty() ? "" : ", ") + change;
  std::string axes;
  for (const base::Axis& axis : page.sweep.axes) axes += (axes.empty() ? "" : " and ") + axis.name;
  std::string out =
      style.heading(fmt::format("Sweep over {}{}{}", axes, changes.empty() ? "" : ", with ", changes)).substr(1);
  out += wrapped(fmt::format("{}, on {}, {}.", page.subject, page.device, page.held));
  for (const design::ChangeLine& line : page.sweep.lines) {
    std::vector<analyze::ColumnDescription> value{
        {.key = "value", .title = page.sweep.axes.back().name, .format = "count"}};
    out += style.heading(line.name) + tables.rows(path, base::fields_json(thinned(rows_of(line))), SIZE_MAX, value);
    if (line.points.size() > kMostSweepRows)
      out += wrapped(fmt::format("{} of {} values; --json has all of them.", kMostSweepRows, line.points.size()));
  }
  out += tables.notes(path);
  if (page.with_plot && page.sweep.axes.back().values.size() > 1)
    out += "\n" + plot_text(to_plot(page), {.width = line_width(), .height = 16, .unicode = true, .colour = colour});
  out += wrapped(page.sweep.source == design::Source::kFloor
                     ? "Times are floors, the least at the device's peaks; tokens/s what they allow."
                     : fmt::format("Times by {}.", design::source_name(page.sweep.source)));
  for (const std::string& each : page.sweep.left_out) out += wrapped("- left out: " + each + ".");
  for (const std::string& note : page.notes) out += wrapped("- " + note + ".");
  return out;
}

void to_json(const WhatIfSweepPage& page, Json& out) {
  out.update(described_fields(kSweepDocument, document_of(page)));
}

}  // namespace llmprof::report
