#pragma once
// The life of the program from exec to exit, as one bar and a table whose rows add up to it, and as JSON.

#include <string>

#include "base/json_fwd.h"
#include "report/layout.h"
#include "report/page.h"

namespace llmprof::report {

// "" where no process was watched: imported runs.
std::string life_section(const Page& page, const Style& style);
base::Json life_json(const Page& page);  // null then

}  // namespace llmprof::report
