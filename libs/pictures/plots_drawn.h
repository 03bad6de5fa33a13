#pragma once
// How each picture is made of its numbers. Pure functions; any name may come in. Internal to libs/pictures.

#include <string>
#include <vector>

#include "analyze/summary.h"
#include "pictures/flame.h"
#include "pictures/points.h"
#include "pictures/timeline.h"
#include "report/plot.h"

namespace llmprof::pictures {

struct PictureFrame {
  std::string title, note;
  int width = 860;
  report::Theme theme = report::Theme::kLight;
};

// Under the roofs: stages, and the operators that took most time; of one stage, or of all.
report::Plot roofline_plot(const Roofline& roofline, const std::string& stage);
// Durations of steps one after the other; `stage` "": of every stage of several steps.
report::Plot steps_plot(const std::vector<analyze::StepCurve>& curves, const std::string& stage);
// Memory of devices, allocators and processes over time.
report::Plot memory_plot(const analyze::Summary& summary);

// Lanes below each other, slices coloured by stage, or, where there is only one, by the names that took most time.
std::string timeline_svg(const Timeline& timeline, const PictureFrame& frame);

// Call paths as boxes on top of each other, outermost at the bottom, as wide as their weight; `stage` "": all.
std::string flame_svg(const Flame& flame, std::size_t weight, const std::string& stage, const PictureFrame& frame);

}  // namespace llmprof::pictures
