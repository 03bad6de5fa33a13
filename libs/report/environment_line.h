#pragma once
#include <string>
#include <string_view>

namespace llmprof::report {

// The environment card in one sentence; "" if the run has none.
std::string environment_line(std::string_view card_json);

}  // namespace llmprof::report
