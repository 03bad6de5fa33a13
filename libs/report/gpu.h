#pragma once
// What a report says about GPUs: how much of their time was attributed, kernels by time, GPU time by source line, time
// that was not recorded, notes.

#include <string>

#include "base/kernel_name.h"
#include "report/layout.h"
#include "report/page.h"
#include "report/table.h"

namespace llmprof::report {

std::string gpu_coverage(const Page& page);                   // lines for the section Coverage; "" without a GPU
std::string gap_lines(const Page& page, const Style& style);  // what was not recorded, and notes
std::string kernel_table(const Page& page, const Style& style, const TableText& tables);  // "" without a GPU
std::string source_table(const Page& page, const Style& style, const TableText& tables);  // "" unless asked for
std::string estimate_line(const Page& page, std::string_view stage);  // what "~" rests on; "" if nothing is estimated

using base::short_kernel_name;

}  // namespace llmprof::report
