#pragma once
// What holds the model back, as JSON (docs/format/json.md, "diagnosis"), and the rules as docs/format/diagnosis.md has them.

#include <string>

#include "analyze/rules/finding.h"
#include "base/json_fwd.h"

namespace llmprof::report {

// "" all stages; else findings of that stage and of the whole run.
base::Json diagnosis_json(const analyze::Diagnosis& diagnosis, const std::string& stage = "");

// A page, its part between the rules markers renewed from the registry; unchanged if it has no markers.
std::string with_current_rules(std::string page);

}  // namespace llmprof::report
