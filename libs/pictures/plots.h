#pragma once
// Single pictures of a run for documents: roofline, timeline, flame graph, waterfall, memory, steps.

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "base/result.h"
#include "pictures/flame.h"
#include "pictures/roofline.h"
#include "pictures/timeline.h"
#include "report/page.h"
#include "report/plot.h"
#include "trace/run.h"

namespace llmprof::pictures {

inline constexpr std::array<std::string_view, 6> kPictures{"roofline",  "timeline", "flame",
                                                           "waterfall", "memory",   "steps"};

// The sections of a summary that pictures, and what is said where one cannot be drawn, are made from.
inline const std::vector<analyze::Section> kPlottedSections = {analyze::Section::kParts,  analyze::Section::kHost,
                                                               analyze::Section::kSteps,  analyze::Section::kTelemetry,
                                                               analyze::Section::kMemory, analyze::Section::kCounters};

struct PictureOptions {
  std::string stage;             // "" all, or the one that matters most
  std::optional<Window> window;  // of a timeline, since the first event of the run
  std::size_t weight = 0;        // of a flame graph: into kFlameWeights
  std::string title;             // instead of the picture's own
  int width = 860;               // pixels of the SVG: a timeline and a flame graph leave out what is thinner
};

// The derived tables of the run must be in use; `page` is that of the run. Where there is nothing to draw: an error
// that says why, and which pictures the run has.
Result<report::Plot> picture_plot(std::string_view picture, const trace::Run& run, const report::Page& page,
                                  const PictureOptions& options);
// The numbers that the picture shows: docs/format/page.md.
Result<base::Json> picture_data(std::string_view picture, const trace::Run& run, const report::Page& page,
                                const PictureOptions& options);

// How each picture is made of its numbers. Pure functions; any name may come in.

// Under the roofs: stages, and the operators that took most time; of one stage, or of all.
report::Plot roofline_plot(const Roofline& roofline, const std::string& stage);
// Durations of steps one after the other; `stage` "": of every stage of several steps.
report::Plot steps_plot(const std::vector<analyze::StepCurve>& curves, const std::string& stage);
// Memory of devices, allocators and processes over time.
report::Plot memory_plot(const analyze::Summary& summary);
// Lanes below each other, slices coloured by stage, or, where there is only one, by the names that took most time.
report::Plot timeline_plot(const Timeline& timeline);
// Call paths as boxes on top of each other, outermost at the bottom, as wide as their weight; `stage` "": all.
report::Plot flame_plot(const Flame& flame, std::size_t weight, const std::string& stage, int width);

}  // namespace llmprof::pictures
