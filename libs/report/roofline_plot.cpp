#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/human.h"
#include "report/roofline.h"

namespace llmprof::report {
namespace {

constexpr double kAlike = 1.03;  // peaks that differ by less are one line on the paper

struct RoofLine {
  std::string types;  // "float16, bfloat16"
  double flops = 0;   // per second, the highest of them
  std::string unit;
};

// Of products, highest first; of plain cores only where products have no such type.
std::vector<RoofLine> roofs_of(const std::vector<hw::Peak>& peaks) {
  std::vector<hw::Peak> flops;
  std::copy_if(peaks.begin(), peaks.end(), std::back_inserter(flops), [&](const hw::Peak& peak) {
    if (peak.quantity != "flops" || !hw::principal(peak) || !(peak.value > 0)) return false;
    const std::size_t vector = peak.type.find("_vector");
    return vector == std::string::npos || hw::find_peak(peaks, "flops", peak.type.substr(0, vector)) == nullptr;
  });
  std::stable_sort(flops.begin(), flops.end(), [](const hw::Peak& a, const hw::Peak& b) { return a.value > b.value; });
  std::vector<RoofLine> roofs;
  for (const hw::Peak& peak : flops) {
    if (!roofs.empty() && roofs.back().flops < peak.value * kAlike) {
      roofs.back().types += ", " + peak.type;
    } else {
      roofs.push_back({peak.type, peak.value, peak.unit});
    }
  }
  return roofs;
}

// Powers of two from well below the first ridge (and the first point) to well above the last.
std::pair<double, double> intensities(const std::vector<RoofLine>& roofs, double bandwidth,
                                      const std::vector<RooflinePoint>& points) {
  double least = 1, most = 64;
  for (const RoofLine& roof : roofs) {
    if (bandwidth <= 0) break;
    least = std::min(least, roof.flops / bandwidth / 16);
    most = std::max(most, roof.flops / bandwidth * 8);
  }
  for (const RooflinePoint& point : points) {
    if (!(point.intensity > 0) || !std::isfinite(point.intensity)) continue;
    least = std::min(least, point.intensity / 2);
    most = std::max(most, point.intensity * 2);
  }
  return {std::exp2(std::floor(std::log2(least))), std::exp2(std::ceil(std::log2(most)))};
}

void add_points(const std::vector<RooflinePoint>& points, Plot& plot) {
  const std::size_t roofs = plot.series.size();
  for (const RooflinePoint& point : points) {
    const auto begin = plot.series.begin() + static_cast<std::ptrdiff_t>(roofs);
    auto found = std::find_if(begin, plot.series.end(), [&](const Series& s) { return s.name == point.name; });
    if (found == plot.series.end()) {
      plot.series.push_back({.name = point.name, .points = {}, .mark = Mark::kPoints});
      found = plot.series.end() - 1;
    }
    found->points.push_back({point.intensity, point.flops_per_second});
  }
}

}  // namespace

Plot roofline_plot(const std::string& device, const std::vector<hw::Peak>& peaks,
                   const std::vector<RooflinePoint>& points) {
  const hw::Peak* memory = hw::find_peak(peaks, "bandwidth", hw::kMemoryStream);
  const double bandwidth = memory != nullptr ? memory->value : 0;
  const std::vector<RoofLine> roofs = roofs_of(peaks);
  const auto [least, most] = intensities(roofs, bandwidth, points);
  Plot plot{.title = fmt::format("What {} can do", device),
            .note = "the memory's bandwidth is not known: flat roofs only"};
  plot.x = {"FLOP per byte", "", Scale::kLog2, false};
  plot.y = {"attainable FLOP/s", "FLOP/s", Scale::kLog10};
  if (memory != nullptr) {
    plot.note = fmt::format("slope: memory at {} ({}, {}); flat: peak of the type; dashed: ridge points",
                            base::human_rate(bandwidth, "B/s"), memory->type, memory->source);
  }
  for (const RoofLine& roof : roofs) {
    const double ridge = bandwidth > 0 ? roof.flops / bandwidth : least;
    Series series{.name = fmt::format("{} {}", roof.types, base::human_rate(roof.flops, roof.unit.c_str())),
                  .points = {},
                  .mark = Mark::kLine};
    if (bandwidth > 0) series.points.push_back({least, least * bandwidth});
    series.points.push_back({ridge, roof.flops});
    series.points.push_back({most, roof.flops});
    plot.series.push_back(std::move(series));
    if (bandwidth > 0) {
      plot.guides.push_back({Guide::At::kX, ridge, fmt::format("{}: {}", roof.types, base::three_digits(ridge)), true});
    }
  }
  add_points(points, plot);
  return plot;
}

}  // namespace llmprof::report
