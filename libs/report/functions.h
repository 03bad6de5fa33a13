#pragma once
// The functions of a run, from its CPU stack samples, and how well those cover it.

#include <string>

#include "base/json_fwd.h"
#include "report/layout.h"
#include "report/page.h"

namespace llmprof::report {

std::string stack_coverage(const Page& page);  // a sentence for the section Coverage; "" if not sampled
std::string function_table(const Page& page, const Style& style);  // "" without samples

std::string sampled_section(const Page& page, const Style& style);  // a training loop; "" if there is none

base::Json stack_coverage_json(const Page& page);
base::Json functions_json(const Page& page);
base::Json sampled_json(const Page& page);

}  // namespace llmprof::report
