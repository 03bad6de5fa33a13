#pragma once
// What the files of `llmprof report` share.

#include <string>

#include "base/json_fwd.h"
#include "base/progress.h"
#include "base/result.h"
#include "report/page.h"
#include "trace/run.h"
#include "verb.h"

namespace llmprof::app {

// --top N of tables.
Result<std::size_t> parse_top(const std::string& text);

// The summary of an opened run, as the options want it.
Result<report::Page> make_page(const Arguments& arguments, trace::Run& run, const base::Progress& progress);

// The report as JSON: what `report --json` prints.
Result<base::Json> report_json(const Arguments& arguments, const trace::Run& run, const report::Page& page);

// --html FILE: writes the page and says so.
Result<std::string> write_html(const Arguments& arguments);

}  // namespace llmprof::app
