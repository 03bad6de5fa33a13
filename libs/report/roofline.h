#pragma once
// What a device can do, laid out for the terminal, as JSON and as a plot. Computes nothing but shares and ridge points.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json_fwd.h"
#include "hw/device.h"
#include "hw/peaks.h"
#include "report/plot.h"

namespace llmprof::report {

struct RooflinePage {
  hw::Device device;
  std::vector<hw::PeakRow> rows;
  std::vector<std::string> notes;
  bool stored = false;  // shown from the store, nothing was measured now
  bool quick = false;
  std::optional<double> seconds;  // that the measurement took
};

// Lines of at most 100 columns.
std::string to_text(const RooflinePage& page);
// Adds the payload behind what `out` already holds: docs/format/json-roofline.md.
void to_json(const RooflinePage& page, base::Json& out);

// Something that was measured, to be held against the roofs.
struct RooflinePoint {
  std::string name;      // points of one name are one series
  double intensity = 0;  // FLOP per byte
  double flops_per_second = 0;
};

// FLOP/s over FLOP per byte, both logarithmic: a roof for every type that has a peak, each with its ridge, and the
// points. Without a bandwidth of reading there are only flat roofs. Types whose peaks are almost the same share a roof.
Plot roofline_plot(const std::string& device, const std::vector<hw::Peak>& peaks,
                   const std::vector<RooflinePoint>& points = {});

// What rooflines of devices and of runs share.
struct FlatRoof {
  std::string names;  // "float16, bfloat16"
  double flops_per_s = 0;
  std::string source;  // "measured", "spec"
  std::string unit = "FLOP/s";
};
// Highest first; roofs that differ by less than 3 % are one line on the paper and become one.
std::vector<FlatRoof> merged_roofs(std::vector<FlatRoof> roofs);
std::pair<double, double> powers_of_two_around(const std::vector<double>& values);  // of positive ones, not empty
// Up the slope of the bandwidth (0: unknown) to the ridge, then flat.
std::vector<PlotPoint> roof_points(double flops_per_s, double bandwidth, double least, double most);
// The series of points of this name, made if it is not there.
Series& series_named(Plot& plot, const std::string& name);

}  // namespace llmprof::report
