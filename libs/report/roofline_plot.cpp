#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/human.h"
#include "report/roofline.h"

namespace llmprof::report {
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
