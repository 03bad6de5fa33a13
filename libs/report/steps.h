#pragma once
// Training steps over the run, and the blocks of the model, for terminal and JSON.

#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "report/layout.h"
#include "report/page.h"

namespace llmprof::report {

std::string training_table(const Page& page, const Style& style);  // "" without training steps
std::string block_table(const Page& page, const Style& style);     // "" without layers

base::Json training_json(const Page& page);
base::Json blocks_json(const Page& page);

// The values as a row of bars between the smallest and the largest, at most `width` of them: with more values each bar
// is the largest of several neighbours, so that no peak is lost.
std::string sparkline(const std::vector<std::int64_t>& values, std::size_t width);

}  // namespace llmprof::report
