#include "report/roofline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/human.h"
#include "base/text_table.h"
#include "hw/device_card.h"
#include "hw/resolve.h"
#include "report/layout.h"
#include "report/table.h"

namespace llmprof::report {

namespace {

std::vector<hw::Peak> values_of(const RooflinePage& page) {
  std::vector<hw::Peak> peaks;
  for (const hw::PeakRow& row : page.rows) {
    if (row.why.empty()) peaks.push_back(row.peak);
  }
  return hw::merged_peaks({}, peaks);
}

const hw::DeviceSpec* spec_of_device(const hw::Device& device) {
  return device.kind == "cpu" ? nullptr : hw::find_device(device.name);
}

std::string value_text(const hw::PeakRow& row) {
  return row.why.empty() ? with_unit(row.peak.value, row.peak.unit) : "-";
}

std::optional<double> share_of_spec(const hw::PeakRow& row, const hw::DeviceSpec* spec) {
  const hw::Figure* figure = hw::spec_of(row.peak, spec);
  if (!row.why.empty() || figure == nullptr || row.peak.source != "measured") return std::nullopt;
  return row.peak.value / figure->value;
}

// A CPU has a grid of bandwidths: streams to the right, levels down.
struct GridRow {
  std::string level;  // "memory", "L3", "L1, one core"
  std::map<std::string, std::string> cells;
};
bool in_grid(const RooflinePage& page, const hw::PeakRow& row) {
  return page.device.kind == "cpu" && row.peak.quantity == "bandwidth";
}

std::string grid_text(const RooflinePage& page) {
  std::vector<GridRow> grid;
  for (const hw::PeakRow& row : page.rows) {
    if (!in_grid(page, row)) continue;
    const std::size_t comma = row.peak.type.find(',');
    std::string level = comma == std::string::npos ? "" : row.peak.type.substr(comma + 2);
    if (level.empty() || level == "one core") level = level.empty() ? "memory" : "memory, one core";
    auto at = std::find_if(grid.begin(), grid.end(), [&](const GridRow& g) { return g.level == level; });
    if (at == grid.end()) at = grid.insert(at, {level, {}});
    at->cells[row.peak.type.substr(0, comma)] = value_text(row);
  }
  if (grid.empty()) return "";
  base::Json rows = base::Json::array();
  for (const GridRow& row : grid) {
    base::Json one(row.cells);
    one["level"] = row.level;
    for (const char* stream : {"read", "write", "copy", "triad"}) one.emplace(stream, nullptr);
    rows.push_back(std::move(one));
  }
  return "\n" + TableText(rows).rows("llmprof.roofline.streams[]", rows);
}

base::Json peaks_json(const RooflinePage& page) {
  const hw::DeviceSpec* spec = spec_of_device(page.device);
  const std::vector<hw::Peak> peaks = values_of(page);
  base::Json rows = base::Json::array();
  for (const hw::PeakRow& row : page.rows) {
    base::Json all = base::fields_json(row.peak);
    const bool known = row.why.empty();
    if (!known) all["source"] = nullptr, all["method"] = nullptr, all["value"] = nullptr;
    all["why"] = base::text_or_null(row.why);
    const hw::Figure* figure = hw::spec_of(row.peak, spec);
    all["spec"] = figure != nullptr ? base::fields_json(*figure) : base::Json();
    all["share_of_spec"] = base::maybe(share_of_spec(row, spec));
    if (row.peak.quantity == "flops" && hw::principal(row.peak))
      all["ridge_flops_per_byte"] = base::maybe(known ? hw::ridge(peaks, row.peak.type) : std::nullopt);
    rows.push_back(std::move(all));
  }
  return rows;
}

std::string peak_table(const RooflinePage& page) {
  constexpr std::string_view kPath = "llmprof.roofline.devices[].peaks[]";
  const base::Json all = peaks_json(page);
  base::Json rows = base::Json::array();
  for (std::size_t i = 0; i < page.rows.size(); ++i) {
    const hw::PeakRow& row = page.rows[i];
    if (in_grid(page, row)) continue;
    rows.push_back(all[i]);
    const bool measured = row.peak.source == "measured" || !page.stored;
    rows.back()["how"] = !row.why.empty() ? "see below" : (measured ? "" : row.peak.source + ": ") + row.peak.method;
    rows.back().emplace("ridge_flops_per_byte", nullptr);
  }
  return rows.empty() ? "" : TableText(rows, spec_of_device(page.device) ? Flags{"spec"} : Flags{}).rows(kPath, rows);
}

// "spec: bfloat16 989 TFLOP/s, float8 1979 TFLOP/s (dense, 1830 MHz, NVIDIA H200 product page)."
std::string spec_lines(const RooflinePage& page) {
  const hw::DeviceSpec* spec = spec_of_device(page.device);
  std::vector<std::pair<std::string, std::string>> groups;  // source, figures
  for (const hw::PeakRow& row : page.rows) {
    const hw::Figure* figure = hw::spec_of(row.peak, spec);
    if (!share_of_spec(row, spec)) continue;
    const hw::Figure* clock = row.peak.quantity == "flops" ? spec->figure("clock") : nullptr;
    const std::string source =
        clock != nullptr ? fmt::format("dense, {:.0f} MHz, {}", clock->value, figure->source) : figure->source;
    auto at = std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.first == source; });
    if (at == groups.end()) at = groups.insert(at, {source, ""});
    at->second += fmt::format("{}{} {}", at->second.empty() ? "" : ", ", row.peak.type,
                              base::human_rate(figure->value, figure->unit.c_str()));
  }
  std::string out;
  for (const auto& [source, figures] : groups) out += wrapped(fmt::format("spec: {} ({}).", figures, source));
  return out;
}

std::string head(const RooflinePage& page) {
  std::string out = fmt::format("{}: {}", page.device.kind, base::printable(page.device.name));
  if (page.stored) return out + ", as stored\n\n";
  if (page.seconds) out += fmt::format(", measured in {}", base::human_ns(*page.seconds * 1e9));
  return out + (page.quick ? " (--quick)\n\n" : "\n\n");
}

}  // namespace

std::string to_text(const RooflinePage& page) {
  std::string out = head(page) + peak_table(page) + grid_text(page) + "\n";
  out += TableText({}).notes("llmprof.roofline.devices[].peaks[]") + spec_lines(page);
  for (const hw::PeakRow& row : page.rows) {
    if (!row.why.empty()) out += wrapped(fmt::format("not measured: {}: {}", row.peak.type, row.why));
  }
  for (const std::string& note : page.notes) out += wrapped("note: " + note);
  return out;
}

void to_json(const RooflinePage& page, base::Json& out) {
  base::Json device = base::fields_json(page.device);
  device["fingerprint"] = hw::fingerprint(page.device);
  out.update(described("llmprof.roofline.devices[]", {{"device", std::move(device)},
                                                      {"stored", page.stored},
                                                      {"quick", page.quick},
                                                      {"seconds", base::maybe(page.seconds)},
                                                      {"peaks", peaks_json(page)},
                                                      {"notes", page.notes}}));
}

namespace {

// Of products; of plain cores only where products have no such type.
std::vector<FlatRoof> roofs_of(const std::vector<hw::Peak>& peaks) {
  std::vector<FlatRoof> roofs;
  for (const hw::Peak& peak : peaks) {
    const std::size_t vector = peak.type.find("_vector");
    const bool alone =
        vector == std::string::npos || hw::find_peak(peaks, "flops", peak.type.substr(0, vector)) == nullptr;
    if (peak.quantity == "flops" && hw::principal(peak) && peak.value > 0 && alone)
      roofs.push_back({peak.type, peak.value, peak.source, peak.unit});
  }
  return merged_roofs(std::move(roofs));
}

}  // namespace

std::vector<FlatRoof> merged_roofs(std::vector<FlatRoof> roofs) {
  constexpr double kAlike = 1.03;
  std::ranges::stable_sort(roofs, std::ranges::greater(), &FlatRoof::flops_per_s);
  std::vector<FlatRoof> merged;
  for (const FlatRoof& roof : roofs) {
    if (!merged.empty() && merged.back().flops_per_s < roof.flops_per_s * kAlike) {
      merged.back().names += ", " + roof.names;
    } else {
      merged.push_back(roof);
    }
  }
  return merged;
}

std::pair<double, double> powers_of_two_around(const std::vector<double>& values) {
  const auto [least, most] = std::ranges::minmax(values);
  return {std::exp2(std::floor(std::log2(least))), std::exp2(std::ceil(std::log2(most)))};
}

std::vector<PlotPoint> roof_points(double flops_per_s, double bandwidth, double least, double most) {
  const double ridge = bandwidth > 0 ? flops_per_s / bandwidth : least;
  std::vector<PlotPoint> points;
  if (ridge > least) points.push_back({least, least * bandwidth});
  points.push_back({std::max(ridge, least), flops_per_s});
  points.push_back({most, flops_per_s});
  return points;
}

Series& series_named(Plot& plot, const std::string& name) {
  const auto found =
      std::ranges::find_if(plot.series, [&](const Series& s) { return s.mark == Mark::kPoints && s.name == name; });
  if (found != plot.series.end()) return *found;
  return plot.series.emplace_back(Series{.name = name, .points = {}, .mark = Mark::kPoints});
}

Plot roofline_plot(const std::string& device, const std::vector<hw::Peak>& peaks,
                   const std::vector<RooflinePoint>& points) {
  const hw::Peak* memory = hw::find_peak(peaks, "bandwidth", hw::kMemoryStream);
  const double bandwidth = memory != nullptr ? memory->value : 0;
  const std::vector<FlatRoof> roofs = roofs_of(peaks);
  std::vector<double> seen{1, 64};
  for (const FlatRoof& roof : roofs) {
    if (bandwidth > 0) seen.insert(seen.end(), {roof.flops_per_s / bandwidth / 16, roof.flops_per_s / bandwidth * 8});
  }
  for (const RooflinePoint& point : points) {
    if (point.intensity > 0 && std::isfinite(point.intensity))
      seen.insert(seen.end(), {point.intensity / 2, point.intensity * 2});
  }
  const auto [least, most] = powers_of_two_around(seen);
  Plot plot{.title = fmt::format("What {} can do", device),
            .note = "the memory's bandwidth is not known: flat roofs only"};
  plot.x = {"FLOP per byte", "", Scale::kLog2, false};
  plot.y = {"attainable FLOP/s", "FLOP/s", Scale::kLog10};
  if (memory != nullptr) {
    plot.note = fmt::format("slope: memory at {} ({}, {}); flat: peak of the type; dashed: ridge points",
                            base::human_rate(bandwidth, "B/s"), memory->type, memory->source);
  }
  for (const FlatRoof& roof : roofs) {
    plot.series.push_back(
        {.name = fmt::format("{} {}", roof.names, base::human_rate(roof.flops_per_s, roof.unit.c_str())),
         .points = roof_points(roof.flops_per_s, bandwidth, least, most),
         .mark = Mark::kLine});
    if (bandwidth <= 0) continue;
    const double ridge = roof.flops_per_s / bandwidth;
    plot.guides.push_back({Guide::At::kX, ridge, fmt::format("{}: {}", roof.names, base::three_digits(ridge)), true});
  }
  for (const RooflinePoint& point : points)
    series_named(plot, point.name).points.push_back({point.intensity, point.flops_per_second});
  return plot;
}

}  // namespace llmprof::report
