#pragma once
// What a name of the report means and what it is in a run: a measure ("decode.mbu", or "mbu" of every stage) or a rule
// of the diagnosis ("wide_weights").

#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "base/result.h"
#include "report/layout.h"
#include "report/page.h"

namespace llmprof::report {

// Without a page (null) only what the name means. "list": all names. kUsage with near names where there is none such.
Result<std::string> explain(std::string_view name, const Page* page, const Style& style);
// What `name` may be, without a run.
std::vector<std::string> explained_names();
// Adds "measures" and "rules" of that name behind what `out` already holds: docs/format/json.md.
Result<void> explain(std::string_view name, const Page* page, base::Json& out);

// The numbers of a run by name, "measures" of the report; "" all stages, else that one and "run".
base::Json measures_json(const analyze::Summary& summary, const std::string& stage = "");

}  // namespace llmprof::report
