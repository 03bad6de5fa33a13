#pragma once
// Everything the page shows about one run as one JSON object (docs/format/page.md, web/src/data.ts), and the page
// itself: one file that needs no network.

#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "base/result.h"
#include "pictures/flame.h"
#include "pictures/roofline.h"
#include "pictures/timeline.h"
#include "report/page.h"
#include "trace/run.h"

namespace llmprof::pictures {

base::Json to_json(const Timeline& timeline);
base::Json to_json(const Flame& flame);
base::Json to_json(const std::vector<FlameDiffNode>& nodes);
base::Json to_json(const Roofline& roofline);
base::Json to_json(const std::vector<analyze::StepCurve>& curves);

// One step of a stage in full resolution, so that zooming shows single kernels in a page without a server.
struct StepDetail {
  std::string stage, which;  // "median", "slowest", "first"
  std::int64_t step_id = 0;
  Timeline timeline;  // without curves
};
// Of the first stages: their median steps, then the slowest, then the first ones.
Result<std::vector<StepDetail>> step_details(TimelineReader& reader, const std::vector<std::string>& stages);

inline constexpr std::size_t kPageBytes = 4'500'000;  // of data, so that a page stays below 5 MB

// {"name": …, "report": …, "timeline": …, "details": […], "flame": …, "roofline": …, "steps": …, "thinned": …};
// `report` is what `report --json` says, or report::to_json if none is given. The pictures are made coarser until all
// of it fits `most_bytes`; "thinned" then says so.
Result<base::Json> run_data(const trace::Run& run, const report::Page& page, std::size_t most_bytes = kPageBytes);
Result<base::Json> run_data(const trace::Run& run, const report::Page& page, base::Json report, std::size_t most_bytes);

// Takes out what a page should not tell strangers: secrets in command lines and variables; home
// folders become "~"; the names of hosts "(host)", unless they are wanted.
struct Privacy {
  std::vector<std::string> hosts;
  bool keep_hosts = false;
};
Result<Privacy> privacy_of(const trace::Run& run);
void redact(base::Json& data, const Privacy& privacy);

// The page with these runs ({"made_by": …, "runs": [run_data…], "diffs": […]}) inside it.
Result<std::string> html_page(const base::Json& data);

// JSON as it may stand inside a script element: <, >, & and the line separators of JavaScript are \u escapes.
std::string script_json(const base::Json& data);

}  // namespace llmprof::pictures
