#pragma once
// A framework's allocator: what it held and gave out, fragmentation, stacks at the peak, what was never freed.

#include <string>

#include "base/json_fwd.h"
#include "report/layout.h"
#include "report/page.h"

namespace llmprof::report {

std::string allocator_section(const Page& page, const Style& style);  // "" where nothing is known
base::Json allocator_json(const Page& page);                          // null where nothing is known

}  // namespace llmprof::report
