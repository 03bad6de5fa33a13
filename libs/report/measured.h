#pragma once
// What a printed profile says about a model (analyze/measures/measured_findings.h), for terminal and JSON.

#include <string>

#include "analyze/measures/measured_findings.h"
#include "base/json_fwd.h"

namespace llmprof::report {

struct MeasuredPage {
  std::string model, device, file;  // as the user named them; "" unknown
  analyze::MeasuredFindings findings;
};

std::string to_text(const MeasuredPage& page, bool colour);
void to_json(const MeasuredPage& page, base::Json& out);

}  // namespace llmprof::report
