#pragma once
// Power, energy, clocks and activity of devices, per stage.

#include <string>

#include "report/layout.h"
#include "report/page.h"
#include "report/table.h"

namespace llmprof::report {

std::string telemetry_section(const Page& page, const Style& style, const TableText& tables);  // "" without readings

}  // namespace llmprof::report
