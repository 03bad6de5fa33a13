#pragma once
// A framework's allocator: what it held and gave out, fragmentation, stacks at the peak, what was never freed.

#include <string>

#include "report/layout.h"
#include "report/page.h"
#include "report/table.h"

namespace llmprof::report {

std::string allocator_section(const Page& page, const Style& style,
                              const TableText& tables);  // "" where nothing is known

}  // namespace llmprof::report
