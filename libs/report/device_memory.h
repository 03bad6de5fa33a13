#pragma once
// Memory of devices: over time, its peak, and what was there at the peak.

#include <string>

#include "report/layout.h"
#include "report/page.h"
#include "report/table.h"

namespace llmprof::report {

std::string device_memory_section(const Page& page, const Style& style,
                                  const TableText& tables);  // "" where nothing is known

}  // namespace llmprof::report
