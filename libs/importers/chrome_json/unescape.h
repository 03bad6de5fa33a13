#pragma once
// Strings of JSON as the text they mean.

#include <string>
#include <string_view>

namespace llmprof::importers::chrome_json {

// The text between the quotes without its escapes, in valid UTF-8. `repaired` is set if it broke the rules of JSON:
// lone surrogates, NUL and bytes that are not UTF-8 become U+FFFD; unknown escapes and control bytes stay as they are.
std::string unescape(std::string_view written, bool& repaired);

}  // namespace llmprof::importers::chrome_json
