#pragma once
// What hardware counters say of a run (Summary::counters): a few lines of each table, all of them if asked for.

#include <string>

#include "report/layout.h"
#include "report/page.h"
#include "report/table.h"

namespace llmprof::report {

std::string asked_set(const Page& page);  // of counters; "" none
bool has_hardware(const Page& page);      // something was counted, or was to be counted and is said why not
std::string hardware_section(const Page& page, const Style& style);  // "" without counters
std::string hardware_alone(const Page& page, const Style& style,
                           const TableText& tables);  // of --counters: says so where there are none

}  // namespace llmprof::report
