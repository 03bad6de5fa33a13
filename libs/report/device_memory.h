#pragma once
// Memory of devices: over time, its peak, and what was there at the peak.

#include <string>

#include "base/json_fwd.h"
#include "report/layout.h"
#include "report/page.h"

namespace llmprof::report {

std::string device_memory_section(const Page& page, const Style& style);  // "" where nothing is known
base::Json device_memory_json(const Page& page);

}  // namespace llmprof::report
