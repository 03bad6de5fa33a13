#pragma once
// The ranges of a run: their tree by host and GPU time, and how their names were understood, for terminal and JSON.

#include <string>
#include <vector>

#include "analyze/names/ranges.h"
#include "base/json_fwd.h"
#include "report/layout.h"
#include "report/page.h"

namespace llmprof::report {

// "" without ranges by other names than llmprof's own annotations.
std::string range_section(const Page& page, const Style& style);
// At most `top` rows, what took most first.
std::string range_tree_table(const std::vector<analyze::RangeNode>& tree, std::size_t top);
std::string meaning_table(const std::vector<analyze::NameMeaning>& meanings, std::size_t top);

base::Json range_tree_json(const std::vector<analyze::RangeNode>& tree);
base::Json meanings_json(const std::vector<analyze::NameMeaning>& meanings);

}  // namespace llmprof::report
