#pragma once
// The waterfall of each stage, from its measured time down to its floor, for terminal and JSON.

#include <string>

#include "base/json_fwd.h"
#include "report/layout.h"
#include "report/page.h"
#include "report/plot.h"

namespace llmprof::report {

// All stages side by side; with Page::waterfall each of them as bars. "" without any.
std::string waterfall_section(const Page& page, const Style& style);
base::Json waterfall_json(const Page& page);

// One stage as a picture: means of its samples, in seconds.
// `first_label`: what the whole is, "predicted" of a run that nobody measured.
Plot plot_of(const analyze::Waterfall& waterfall, const std::string& first_label = "measured");

}  // namespace llmprof::report
