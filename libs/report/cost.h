#pragma once
// What recording itself cost, and how much of the run was recorded.

#include <string>

#include "base/json_fwd.h"
#include "report/layout.h"
#include "report/page.h"

namespace llmprof::report {

std::string window_line(const Page& page);  // "" if all of the run was recorded
std::string cost_lines(const Page& page, const Style& style);

}  // namespace llmprof::report
