#pragma once
// Keys of config.json that no family reads: those without influence on any cost, and those with a known one.

#include <string_view>

#include "base/json_fwd.h"

namespace llmprof::model {

bool is_off(const base::Json& value);  // null, false, 0, "", [] or {}: whatever the key means, it is not used
bool is_harmless(std::string_view key);
// What an unread key does to the numbers, in words. For unknown keys: that it is unknown.
std::string_view effect_of(std::string_view key);

}  // namespace llmprof::model
