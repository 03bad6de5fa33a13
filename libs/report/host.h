#pragma once
// Processes and memory as they were seen from outside.

#include <cstdint>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "report/layout.h"
#include "report/page.h"

namespace llmprof::report {

std::string host_section(const Page& page, const Style& style);
base::Json host_json(const Page& page);

// The highest of the points in each of `columns` equal parts of their time; as before where there is none.
std::vector<std::int64_t> highest_in_parts(const std::vector<analyze::MemoryPoint>& points, std::size_t columns);

}  // namespace llmprof::report
