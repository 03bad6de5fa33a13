#pragma once
// What a report says about GPUs: how much of their time was attributed, kernels by time, GPU time by source line, time
// that was not recorded, notes.

#include <string>

#include "base/json_fwd.h"
#include "base/kernel_name.h"
#include "report/layout.h"
#include "report/page.h"

namespace llmprof::report {

std::string gpu_coverage(const Page& page);                      // lines for the section Coverage; "" without a GPU
std::string gap_lines(const Page& page, const Style& style);     // what was not recorded, and notes
std::string kernel_table(const Page& page, const Style& style);  // "" without a GPU
std::string source_table(const Page& page, const Style& style);  // "" unless asked for
std::string estimate_line(const Page& page, std::string_view stage);  // what "~" rests on; "" if nothing is estimated

// "~1.53 ms" where a part of it is estimated.
std::string device_time_cell(std::int64_t time_ns, std::int64_t estimated_ns);
using base::short_kernel_name;

base::Json kernels_json(const Page& page);
base::Json sources_json(const Page& page);
base::Json gaps_json(const Page& page);
base::Json notes_json(const Page& page);

}  // namespace llmprof::report
