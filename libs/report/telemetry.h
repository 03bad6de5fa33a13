#pragma once
// Power, energy, clocks and activity of devices, per stage.

#include <string>

#include "base/json_fwd.h"
#include "report/layout.h"
#include "report/page.h"

namespace llmprof::report {

std::string telemetry_section(const Page& page, const Style& style);  // "" without readings
base::Json telemetry_json(const Page& page);                          // null without readings

}  // namespace llmprof::report
