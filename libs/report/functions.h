#pragma once
// The functions of a run, from its CPU stack samples, and how well those cover it.

#include <string>

#include "report/layout.h"
#include "report/page.h"
#include "report/table.h"

namespace llmprof::report {

std::string stack_coverage(const Page& page);  // a sentence for the section Coverage; "" if not sampled

std::string sampled_section(const Page& page, const Style& style,
                            const TableText& tables);  // a training loop; "" if there is none

}  // namespace llmprof::report
