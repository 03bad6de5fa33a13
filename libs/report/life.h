#pragma once
// The life of the program from exec to exit, as one bar and a table whose rows add up to it, and as JSON.

#include <string>

#include "report/layout.h"
#include "report/page.h"
#include "report/table.h"

namespace llmprof::report {

// "" where no process was watched: imported runs.
std::string life_section(const Page& page, const Style& style, const TableText& tables);

}  // namespace llmprof::report
