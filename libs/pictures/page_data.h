#pragma once
// Everything the page shows about one run as one JSON object (docs/format/page.md, web/src/data.ts), and the page
// itself: one file that needs no network (RELIABILITY H1 to H5).

#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "base/result.h"
#include "pictures/flame.h"
#include "pictures/points.h"
#include "pictures/timeline.h"
#include "report/page.h"
#include "trace/run.h"

namespace llmprof::pictures {

base::Json to_json(const Timeline& timeline);
base::Json to_json(const Flame& flame);
base::Json to_json(const Roofline& roofline);
base::Json to_json(const std::vector<StepCurve>& curves);

// {"report": …, "timeline": …, "flame": …, "roofline": …, "steps": …}; `report` as report::to_json writes it.
Result<base::Json> run_data(const trace::Run& run, const report::Page& page);

// The page with these runs ({"runs": [run_data…], "diffs": […], "made_by": …}) inside it.
Result<std::string> html_page(const base::Json& data);

}  // namespace llmprof::pictures
