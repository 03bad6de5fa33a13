#pragma once
// What an inference server exported: requests, KV cache, latencies, tokens.

#include <string>

#include "base/json_fwd.h"
#include "report/layout.h"
#include "report/page.h"

namespace llmprof::report {

std::string metrics_section(const Page& page, const Style& style);  // "" where there are none
base::Json metrics_json(const Page& page);                          // null where there are none

}  // namespace llmprof::report
