#pragma once
// Processes and memory as they were seen from outside.

#include <string>

#include "base/json_fwd.h"
#include "report/layout.h"
#include "report/page.h"

namespace llmprof::report {

std::string host_section(const Page& page, const Style& style);
base::Json host_json(const Page& page);

// Values over time as a line of block characters, the highest of each column: "▁▁▃█▆".
std::string sparkline(const std::vector<analyze::MemoryPoint>& points, std::size_t columns);

}  // namespace llmprof::report
