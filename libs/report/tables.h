#pragma once
// The tables of the terminal report. Every percentage says of what, in the title or below the table.

#include <string>

#include "report/layout.h"
#include "report/page.h"
#include "report/table.h"

namespace llmprof::report {

Flags flags_of(const Page& page);                      // what columns and notes of tables ask for
bool shown(const Page& page, std::string_view stage);  // passes the --stage filter

std::string stage_table(const Page& page, const Style& style,
                        const TableText& tables);  // time, steps, tokens, latencies
std::string efficiency_table(const Style& style, const TableText& tables, const Page& page);
std::string part_tables(const Page& page, const Style& style, const TableText& tables);  // operators by stage, modules
std::string gemm_table(const Page& page, const Style& style, const TableText& tables);

}  // namespace llmprof::report
