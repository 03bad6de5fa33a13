#pragma once
// The numbers of a run by name, as JSON (docs/format/json.md) and as the reference page docs/format/measures.md.

#include <string>
#include <string_view>

#include "analyze/measures/measures.h"
#include "base/json_fwd.h"

namespace llmprof::report {

std::string_view better_text(analyze::Better better);  // "lower", "higher", "neither"
base::Json measure_json(const analyze::Measure& measure);
base::Json measures_json(const analyze::Summary& summary, const std::string& stage = "");  // "" all; else it and "run"

// A page, its part between the measures markers renewed; unchanged if it has no markers.
std::string with_current_measures(std::string page);

}  // namespace llmprof::report
