#pragma once
// Idle time of the device and what the host did then, for terminal and JSON.

#include <string>

#include "analyze/steps/idle.h"
#include "base/json_fwd.h"
#include "report/layout.h"
#include "report/page.h"

namespace llmprof::report {

std::string idle_section(const Page& page, const Style& style);  // "" where no device idled
// "compilation (nvrtc for cuDNN) 48 %, Python 20 %, not on a CPU 12 %": of `total_ns`; "" without enough samples.
std::string works_text(const analyze::StageIdle& idle, double total_ns);

}  // namespace llmprof::report
