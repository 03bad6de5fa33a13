#pragma once
// An implementation as a text that is small enough to keep: names once, layers that repeat as one block and how often.

#include <string>
#include <string_view>

#include "predict/implementation/implementation.h"

namespace llmprof::predict {

// JSON on one line. Of the run only its name: no folder, no command line.
std::string to_json_text(const Implementation& implementation);
// Errors name `where` and what is wrong.
Result<Implementation> parse_implementation(std::string_view text, const std::string& where);

}  // namespace llmprof::predict
