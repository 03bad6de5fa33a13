#pragma once
// What holds the model back, as JSON: docs/format/json.md, "diagnosis".

#include <string>

#include "analyze/rules/finding.h"
#include "base/json_fwd.h"

namespace llmprof::report {

// "" all stages; else findings of that stage and of the whole run.
base::Json diagnosis_json(const analyze::Diagnosis& diagnosis, const std::string& stage = "");

}  // namespace llmprof::report
