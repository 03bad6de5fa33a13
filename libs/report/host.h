#pragma once
// Processes and memory as they were seen from outside.

#include <cstdint>
#include <string>
#include <vector>

#include "report/layout.h"
#include "report/page.h"
#include "report/table.h"

namespace llmprof::report {

std::string host_section(const Page& page, const Style& style, const TableText& tables);
inline constexpr std::string_view kNoReadings =
    "No process was read from outside: recorded with --no-host, or too short to be read, or not by llmprof record.";

// The highest of the points in each of `columns` equal parts of their time; as before where there is none.
std::vector<std::int64_t> highest_in_parts(const std::vector<analyze::MemoryPoint>& points, std::size_t columns);

}  // namespace llmprof::report
