#pragma once
// The tables of the terminal report. Every percentage says of what, in the title or below the table.

#include <string>

#include "report/layout.h"
#include "report/page.h"

namespace llmprof::report {

std::string shape_text(const analyze::Product& product);  // "[256, 768] x [768, 3072]"
bool shown(const Page& page, std::string_view stage);     // passes the --stage filter

std::string stage_table(const Page& page, const Style& style);       // time, steps, tokens, TTFT, TPOT
std::string efficiency_table(const Page& page, const Style& style);  // FLOPs, bytes, MFU, MBU, bound, floor
std::string part_tables(const Page& page, const Style& style);       // operators of each stage, then modules
std::string gemm_table(const Page& page, const Style& style);

}  // namespace llmprof::report
