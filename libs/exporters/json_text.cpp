#include "exporters/json_text.h"

#include "base/json.h"

namespace llmprof::exporters {

std::string json_quoted(std::string_view text) { return base::to_line(base::Json(text)); }

bool is_json(std::string_view text) { return base::Json::accept(text); }

}  // namespace llmprof::exporters
