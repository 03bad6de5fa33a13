#pragma once
// What `llmprof plan` says, for terminal and JSON.

#include <string>

#include "base/json_fwd.h"
#include "predict/plan/document.h"

namespace llmprof::report {

struct PlanPage {
  predict::plan::PlanDocument document;
  bool full = false;  // every configuration, what was left out, the devices
};
std::string to_text(const PlanPage& page, bool colour);
void to_json(const PlanPage& page, base::Json& out);

}  // namespace llmprof::report
