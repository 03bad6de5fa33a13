#pragma once
// What a report says of runs that other tools' files made: the files, operators of the framework, attention, totals.

#include <string>

#include "report/layout.h"
#include "report/page.h"
#include "report/table.h"

namespace llmprof::report {

bool is_imported(const Page& page);
bool has_timeline(const Page& page);         // false: totals, a log without times, kernels that were run one by one
std::string source_lines(const Page& page);  // the files, first thing of the coverage
std::string framework_table(const Page& page, const Style& style, const TableText& tables);
std::string counter_table(const Page& page, const Style& style, const TableText& tables);
std::string totals_table(const Page& page, const Style& style, const TableText& tables);

}  // namespace llmprof::report
