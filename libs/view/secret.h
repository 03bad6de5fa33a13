#pragma once
// What only the user's own browser knows.

#include <string>
#include <string_view>

#include "base/result.h"

namespace llmprof::view {

// 128 bits of the system's randomness in hexadecimal.
Result<std::string> make_secret();

// Compares in a time that does not depend on where they differ. Of unequal length: false.
bool same_secret(std::string_view given, std::string_view expected);

}  // namespace llmprof::view
