#pragma once
#include <nlohmann/json_fwd.hpp>

namespace llmprof::base {
using Json = nlohmann::ordered_json;  // keeps the order in which keys are written
}
