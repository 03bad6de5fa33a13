#pragma once
// Training steps over the run, and the blocks of the model, for terminal and JSON.

#include <string>
#include <vector>

#include "report/layout.h"
#include "report/page.h"
#include "report/table.h"

namespace llmprof::report {

std::string step_lines(const Page& page);  // a sparkline for every stage of some steps; "" without any
std::string training_table(const Page& page, const Style& style, const TableText& tables);  // "" without training steps
std::string block_table(const Page& page, const Style& style);                              // "" without layers

}  // namespace llmprof::report
