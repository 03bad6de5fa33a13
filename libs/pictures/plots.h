#pragma once
// Single pictures of a run for documents: roofline, timeline, flame graph, waterfall, memory, steps.

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "base/json_fwd.h"
#include "base/result.h"
#include "pictures/timeline.h"
#include "report/page.h"
#include "report/plot.h"
#include "trace/run.h"

namespace llmprof::pictures {

inline constexpr std::array<std::string_view, 6> kPictures{"roofline",  "timeline", "flame",
                                                           "waterfall", "memory",   "steps"};

struct PictureOptions {
  std::string stage;             // "" all, or the one that matters most
  std::optional<Window> window;  // of a timeline, since the first event of the run
  std::size_t weight = 0;        // of a flame graph: into kFlameWeights
  std::string title;             // instead of the picture's own
  int width = 860;               // pixels
  report::Theme theme = report::Theme::kLight;
  report::TextCanvas canvas;
};

struct Drawing {
  std::string svg;
  std::string text;  // for a terminal; "" where the picture has no such form
};

// The derived tables of the run must be in use; `page` is that of the run. Where there is nothing to draw: an error
// that says why, and which pictures the run has.
Result<Drawing> draw(std::string_view picture, const trace::Run& run, const report::Page& page,
                     const PictureOptions& options);
// The numbers that the picture shows: docs/format/page.md.
Result<base::Json> picture_data(std::string_view picture, const trace::Run& run, const report::Page& page,
                                const PictureOptions& options);

}  // namespace llmprof::pictures
