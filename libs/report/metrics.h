#pragma once
// What an inference server exported: requests, KV cache, latencies, tokens.

#include <string>

#include "report/layout.h"
#include "report/page.h"
#include "report/table.h"

namespace llmprof::report {

std::string metrics_section(const Page& page, const Style& style, const TableText& tables);  // "" where there are none

}  // namespace llmprof::report
