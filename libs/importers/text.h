#pragma once
// Text of strangers: what is UTF-8, and how to make it so.

#include <string>
#include <string_view>

namespace llmprof::importers {

bool is_utf8(std::string_view text);  // NUL is not: Parquet readers stumble over it
// Every byte that is no part of valid UTF-8 becomes U+FFFD.
std::string to_utf8(std::string_view text);

}  // namespace llmprof::importers
